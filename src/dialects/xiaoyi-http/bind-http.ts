/** `POST /agent/message`: JSON-RPC of the platform's own kind, answered in full or, for messages, by a stream. */

import { type ErrorCode, ProtocolError } from "../../model/errors.ts";
import type { CallContext } from "../../model/operation.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { ExchangeReply, ExchangeRequest, FullReply } from "../../wire/exchange.ts";
import { type JsonRpcId, type JsonRpcRequest, PARSE_ERROR, parseJsonRpc } from "../../wire/json-rpc.ts";
import { decodeUtf8, parseJson } from "../../wire/parse-json.ts";
import type { HttpServing, ServeContext } from "../contract.ts";
import { toPublicError } from "../shared/errors.ts";
import { isJson, requireMediaType } from "../shared/http/requests.ts";
import { isRecord } from "../shared/proto/json-reading.ts";
import { AgentTasks } from "../xiaoyi/agent-tasks.ts";
import { methodOf, readControl, toCancelResult, toClearResult } from "../xiaoyi/control.ts";
import { type HeardMessage, readMessageParams, tappedPushId } from "../xiaoyi/decode.ts";
import { NO_INTAKE } from "../xiaoyi/file-intake.ts";
import { errorText } from "../xiaoyi/phone-texts.ts";
import { type Admission, admit, KEY_HINT, sessionScope } from "./access.ts";
import { authorize, deauthorize, withAccount } from "./account.ts";
import { answer, refuse } from "./answers.ts";
import { soon } from "./attended-frames.ts";
import { type Answering, Conversation } from "./conversation.ts";
import type { Entry } from "./entry.ts";
import { RefusalLog } from "./refusal-log.ts";
import { issueToken } from "./sealed-token.ts";
import { streamReply, tappedReply } from "./stream.ts";
import { answerTokenRequest, requireShortBody } from "./token-endpoint.ts";
import { DIALECT_NAME, MESSAGE_PATH, TOKEN_PATH, VERSION } from "./version.ts";

export interface XiaoyiHttpOptions {
  /** How an agent is connected; an agent without entries has no such place. */
  readonly entriesFor: (agent: string) => readonly Entry[];
  readonly clock: Clock;
  readonly log: Log;
}

export function createHttpServing({ clock, entriesFor, log }: XiaoyiHttpOptions): readonly HttpServing[] {
  const refusals = new RefusalLog(log);
  const refuseHere: HttpServing["refuse"] = (error, _exchange, status) => {
    // Without a status it is known, and noted, for which agent it is.
    if (status !== undefined) refusals.note(undefined, error);
    return refuse(toPublicError(error), null, status);
  };
  const refusalOf = (agent: string, judge: () => unknown): ProtocolError | undefined => {
    try {
      judge();
      return undefined;
    } catch (error) {
      refusals.note(agent, error);
      return toPublicError(error);
    }
  };
  const common = { version: VERSION, refuse: refuseHere } as const;
  return [
    {
      ...common,
      prefix: MESSAGE_PATH,
      serves: (agent) => entriesFor(agent).length > 0,
      screen: (head, agent) => refusalOf(agent, () => admit(head, entriesFor(agent), agent, clock.now())),
      handle: (exchange, context) => handle(exchange, context, entriesFor(context.service.name), { clock, refusals }),
    },
    {
      ...common,
      prefix: TOKEN_PATH,
      allowsAnonymous: true,
      serves: (agent) => entriesFor(agent).some(({ access }) => access.kind === "oauth"),
      screen: (head, agent) => refusalOf(agent, () => requireShortBody(head)),
      async handle(exchange, { ids, service: { name: agent } }) {
        const refused = misplaced(exchange);
        if (refused !== undefined) return refused;
        const desk = { agent, entries: entriesFor(agent), now: clock.now(), unique: ids.context() };
        const reply = answerTokenRequest(exchange, desk);
        if (reply.status === 401) refusals.warn(agent, "wrong-credentials", KEY_HINT);
        return reply;
      },
    },
  ];
}

interface Tools {
  readonly clock: Clock;
  readonly refusals: RefusalLog;
}

async function handle(
  exchange: ExchangeRequest,
  context: ServeContext,
  entries: readonly Entry[],
  tools: Tools,
): Promise<ExchangeReply> {
  const refused = misplaced(exchange);
  if (refused !== undefined) return refused;
  try {
    const admission = admit(exchange, entries, context.service.name, tools.clock.now());
    return await new Request(exchange, context, admission, tools).reply();
  } catch (error) {
    tools.refusals.note(context.service.name, error);
    return refuse(toPublicError(error), idIn(exchange, context.limits));
  }
}

/** Also of a request that is not read any further: its caller matches the answer by it. */
function idIn({ body }: ExchangeRequest, limits: ServeContext["limits"]): JsonRpcId {
  const parsed = parseJsonRpc(body, limits);
  return parsed.ok ? parsed.request.id : parsed.id;
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
  readonly #refusals: RefusalLog;

  constructor(exchange: ExchangeRequest, context: ServeContext, { by, entry }: Admission, tools: Tools) {
    this.#exchange = exchange;
    this.#context = context;
    this.#entry = entry;
    this.#by = by;
    this.#clock = tools.clock;
    this.#refusals = tools.refusals;
  }

  async reply(): Promise<ExchangeReply> {
    const { body, headers } = this.#exchange;
    requireMediaType(headers, isJson);
    const parsed = parseJsonRpc(body, this.#context.limits);
    if (!parsed.ok) {
      const code = parsed.code === PARSE_ERROR ? "PARSE_ERROR" : "INVALID_REQUEST";
      return this.#refuse(new ProtocolError(code, parsed.message), parsed.id);
    }
    const { id, method } = parsed.request;
    try {
      return await this.#answer(parsed.request);
    } catch (error) {
      return this.#refuse(error, id, methodOf(method) === "authorize");
    }
  }

  /** `hasOwnText`: the error has a sentence for people already. */
  #refuse(error: unknown, id: JsonRpcId, hasOwnText = false): FullReply {
    this.#refusals.note(this.#context.service.name, error);
    const refusal = toPublicError(error);
    const isShown = !hasOwnText && !isTechnical(refusal);
    return refuse(refusal, id, undefined, isShown ? errorText(refusal, this.#entry.language) : undefined);
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
        const { id: taskId, state } = await this.#conversation().cancel(words, id);
        if (state === "unknown") this.#refusals.warn(this.#context.service.name, "nothing-to-cancel", NOTHING_RAN);
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
    const { language, notices, render, unanswered, uploads } = this.#entry;
    const { sessionId, taskId } = heard;
    await notices?.heard(heard);
    const tapped = tappedPushId(heard.events);
    if (notices !== undefined && tapped !== undefined) {
      return tappedReply(await notices.recall(tapped), { id, taskId, language }, this.#context);
    }
    const attendance = notices && {
      onTask: (task: string) => {
        if (task !== taskId) void unanswered?.delete(taskId);
        void unanswered?.set(task, sessionId);
      },
      onSeen: (task: string) => {
        notices.seen(task);
        void unanswered?.delete(task);
      },
      onLeft: (task: string) => {
        notices.left(task, sessionId);
        void unanswered?.delete(task);
      },
    };
    const onFailure = (error: unknown) => this.#refusals.note(this.#context.service.name, error);
    const how = { id, taskId, render, language, attendance, prepare: uploads?.prepare, onFailure };
    // Before the task can end: of one that ends as the process does, the next one tells the user.
    if (notices !== undefined) await unanswered?.set(taskId, sessionId);
    const answering = await this.#say(heard).catch((error: unknown) => {
      void unanswered?.delete(taskId);
      throw error;
    });
    if (answering === undefined) void unanswered?.delete(taskId);
    return streamReply(answering, how, this.#context);
  }

  /** Files may take a while, in which the user should see that somebody is there. */
  async #say(heard: HeardMessage): Promise<Answering | undefined> {
    const { intake = NO_INTAKE, language } = this.#entry;
    const message = await withAccount(heard, this.#entry);
    if (!intake.concerns(message)) return this.#conversation().say(heard, message);
    return soon(intake.takeIn(message, language).then((readable) => this.#conversation().say(heard, readable)));
  }

  #conversation(): Conversation {
    const caller = { owner: this.#entry.owner, authenticated: true };
    const call: CallContext = { caller, tenant: "", extensions: NO_EXTENSIONS, dialect: DIALECT_NAME };
    const tasks = new AgentTasks(this.#context.service, call, this.#clock);
    return new Conversation({ tasks, cleared: this.#entry.cleared, newContext: this.#context.ids.context });
  }

  /** With the members that JSON-RPC does not know: most requests name their session beside the method. */
  #envelope(): Readonly<Record<string, unknown>> {
    const value = parseJson(decodeUtf8(this.#exchange.body), this.#context.limits);
    return isRecord(value) ? value : {};
  }
}

const TECHNICAL: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["PARSE_ERROR", "INVALID_REQUEST", "METHOD_NOT_FOUND"]);

/** The request itself is wrong, which is for developers; what a user sent may be, which is for the user. */
function isTechnical({ code, violations }: ProtocolError): boolean {
  const [{ field } = { field: "" }] = violations ?? [];
  return TECHNICAL.has(code) || (code === "INVALID_PARAMS" && !field.startsWith("message.parts"));
}

const NOTHING_RAN = "No task of that id is known, and none runs in that session.";
const NO_EXTENSIONS: readonly string[] = [];
