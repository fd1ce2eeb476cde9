/** `POST /agent/message`: JSON-RPC of the platform's own kind, answered in full or, for messages, by a stream. */
import { ProtocolError } from "../../model/errors.ts";
import type { Call } from "../../model/operation.ts";
import type { Clock } from "../../model/ports.ts";
import type { ExchangeReply, ExchangeRequest, FullReply } from "../../wire/exchange.ts";
import { decodeUtf8, parseJson } from "../../wire/json-limits.ts";
import { type JsonRpcRequest, PARSE_ERROR, parseJsonRpc } from "../../wire/json-rpc.ts";
import type { HttpServing, ServeContext } from "../contract.ts";
import { presentable } from "../shared/presentable.ts";
import { isRecord } from "../shared/proto-json-reading.ts";
import { isJson, requireMediaType } from "../shared/request-headers.ts";
import { AgentTasks } from "../xiaoyi/agent-tasks.ts";
import { methodOf, readControl, toCancelResult, toClearResult } from "../xiaoyi/control.ts";
import { type HeardMessage, readMessageParams, tappedPushId } from "../xiaoyi/decode.ts";
import { GONE } from "../xiaoyi/notification.ts";
import { type Admission, admit, sessionScope } from "./access.ts";
import { authorize, deauthorize, withAccount } from "./account.ts";
import { answer, refuse } from "./answers.ts";
import { soon } from "./attended-frames.ts";
import { type Answering, Conversation } from "./conversation.ts";
import type { Entry } from "./entry.ts";
import { issueToken } from "./sealed-token.ts";
import { streamReply, tappedReply } from "./stream.ts";
import { answerTokenRequest } from "./token-endpoint.ts";
import { DIALECT_NAME, MESSAGE_PATH, TOKEN_PATH, VERSION } from "./version.ts";

export interface XiaoyiHttpOptions {
  /** How an agent is connected; an agent without entries has no such place. */
  readonly entriesFor: (agent: string) => readonly Entry[];
  readonly clock: Clock;
}

export function createHttpServing({ clock, entriesFor }: XiaoyiHttpOptions): readonly HttpServing[] {
  const refuseHere: HttpServing["refuse"] = (error, _exchange, status) => refuse(presentable(error), null, status);
  const common = { version: VERSION, knowsCallers: true, refuse: refuseHere } as const;
  return [
    {
      ...common,
      prefix: MESSAGE_PATH,
      serves: (agent) => entriesFor(agent).length > 0,
      handle: (exchange, context) => handle(exchange, context, entriesFor(context.service.name), clock),
    },
    {
      ...common,
      prefix: TOKEN_PATH,
      serves: (agent) => entriesFor(agent).some(({ access }) => access.kind === "oauth"),
      async handle(exchange, { ids, service: { name: agent } }) {
        const refused = misplaced(exchange);
        if (refused !== undefined) return refused;
        const desk = { agent, entries: entriesFor(agent), now: clock.now(), unique: ids.context() };
        return answerTokenRequest(exchange, desk);
      },
    },
  ];
}

async function handle(
  exchange: ExchangeRequest,
  context: ServeContext,
  entries: readonly Entry[],
  clock: Clock,
): Promise<ExchangeReply> {
  const refused = misplaced(exchange);
  if (refused !== undefined) return refused;
  try {
    const admission = admit(exchange, entries, context.service.name, clock.now());
    return await new Request(exchange, context, admission, clock).reply();
  } catch (error) {
    return refuse(presentable(error), null);
  }
}

/** Both places take POST, and have nothing below them. */
function misplaced({ method, path }: ExchangeRequest): FullReply | undefined {
  if (path !== "" && path !== "/") {
    return refuse(new ProtocolError("METHOD_NOT_FOUND", "There is nothing at this path."), null, 404);
  }
  if (method === "POST") return undefined;
  const reply = refuse(new ProtocolError("INVALID_REQUEST", "This path takes POST only."), null, 405);
  return { ...reply, headers: { ...reply.headers, allow: "POST" } };
}

/** One request of the platform, which is who it says. */
class Request {
  readonly #exchange: ExchangeRequest;
  readonly #context: ServeContext;
  readonly #entry: Entry;
  readonly #by: Admission["by"];
  readonly #clock: Clock;

  constructor(exchange: ExchangeRequest, context: ServeContext, { by, entry }: Admission, clock: Clock) {
    this.#exchange = exchange;
    this.#context = context;
    this.#entry = entry;
    this.#by = by;
    this.#clock = clock;
  }

  async reply(): Promise<ExchangeReply> {
    const { body, headers } = this.#exchange;
    requireMediaType(headers, isJson);
    const parsed = parseJsonRpc(body, this.#context.limits);
    if (!parsed.ok) {
      return refuse(
        new ProtocolError(parsed.code === PARSE_ERROR ? "PARSE_ERROR" : "INVALID_REQUEST", parsed.message),
        parsed.id,
      );
    }
    try {
      return await this.#answer(parsed.request);
    } catch (error) {
      return refuse(presentable(error), parsed.request.id);
    }
  }

  async #answer(request: JsonRpcRequest): Promise<ExchangeReply> {
    const { id, method, notification, params } = request;
    const asked = methodOf(method);
    if (notification && asked !== "initialized") {
      throw new ProtocolError("INVALID_REQUEST", "The request needs an id: every method is answered.");
    }
    switch (asked) {
      case "initialize":
        return answer(id, this.#initialize());
      case "initialized":
        return { status: 200, headers: {}, body: undefined };
      case "message":
        return this.#message(request);
      case "cancel": {
        const words = readControl(this.#envelope());
        const { id: taskId, state } = await this.#conversation().cancel(words);
        return answer(id, toCancelResult(taskId ?? words.taskIds[0] ?? String(id), state));
      }
      case "clear":
        return answer(id, toClearResult(await this.#conversation().clear(readControl(this.#envelope()))));
      case "authorize":
        return answer(id, await authorize(params, this.#entry, this.#context.ids));
      case "deauthorize":
        return answer(id, await deauthorize(params, this.#entry));
      case undefined:
        throw new ProtocolError("METHOD_NOT_FOUND", "There is no such method.");
    }
  }

  #initialize(): object {
    if (this.#by === "session") {
      throw new ProtocolError("UNAUTHENTICATED", "A session is opened by credentials, not by another session.");
    }
    const { sessionTtlMs } = this.#entry;
    const scope = sessionScope(this.#entry, this.#context.service.name);
    const agentSessionId = issueToken(scope, this.#clock.now() + sessionTtlMs, this.#context.ids.context());
    return { version: VERSION, agentSessionId, agentSessionTtl: String(Math.floor(sessionTtlMs / 1_000)) };
  }

  async #message({ id, params }: JsonRpcRequest): Promise<ExchangeReply> {
    const { ids, limits, report } = this.#context;
    const { losses, value: heard } = readMessageParams(params ?? {}, { maxItems: limits.maxParts }, ids);
    if (losses.length > 0) report(losses);
    const { notices, render, uploads } = this.#entry;
    const { sessionId, taskId } = heard;
    notices?.heard(heard);
    const tapped = tappedPushId(heard.events);
    if (notices !== undefined && tapped !== undefined) {
      return tappedReply((await notices.recall(tapped)) ?? GONE, { id, taskId }, this.#context);
    }
    const attendance = notices && {
      onSeen: (task: string) => notices.seen(task),
      onLeft: (task: string) => notices.left(task, sessionId),
    };
    const how = { id, taskId, render, attendance, prepare: uploads?.prepare };
    return streamReply(await this.#say(heard), how, this.#context);
  }

  /** Files may take a while, in which the user should see that somebody is there. */
  async #say(heard: HeardMessage): Promise<Answering | undefined> {
    const { intake } = this.#entry;
    const message = await withAccount(heard, this.#entry);
    if (intake?.concerns(message) !== true) return this.#conversation().say(heard, message);
    return soon(intake.takeIn(message).then((readable) => this.#conversation().say(heard, readable)));
  }

  #conversation(): Conversation {
    const caller = { owner: this.#entry.owner, authenticated: true };
    const call: Call = { caller, tenant: "", extensions: NO_EXTENSIONS, dialect: DIALECT_NAME };
    return new Conversation(new AgentTasks(this.#context.service, call, this.#clock));
  }

  /** With the members that JSON-RPC does not know: most requests name their session beside the method. */
  #envelope(): Readonly<Record<string, unknown>> {
    const value = parseJson(decodeUtf8(this.#exchange.body), this.#context.limits);
    return isRecord(value) ? value : {};
  }
}

const NO_EXTENSIONS: readonly string[] = [];
