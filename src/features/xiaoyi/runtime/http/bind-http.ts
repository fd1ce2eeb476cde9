/**
 * `POST /agent/message`: the platform's variant of JSON-RPC. Messages are answered by a stream, other requests by one
 * response.
 */

import type { AdmitBy, SelfAdmittingHttpServing, ServeContext } from "../../../../core/dialects/contract.ts";
import { errorHeaders, toPublicError } from "../../../../core/dialects/shared/errors.ts";
import { httpStatusOf } from "../../../../core/dialects/shared/http/json-rpc.ts";
import { isJson, requireMediaType } from "../../../../core/dialects/shared/http/requests.ts";
import { ProtocolError } from "../../../../core/model/errors.ts";
import { type Fields, fieldsOf } from "../../../../core/model/json.ts";
import type { CallContext, ReplyTo } from "../../../../core/model/operation.ts";
import type { Clock, Log } from "../../../../core/model/ports.ts";
import {
  type ExchangeReply,
  type ExchangeRequest,
  type FullReply,
  jsonReply,
  type RequestHead,
} from "../../../../core/wire/exchange.ts";
import { type JsonRpcId, type JsonRpcRequest, PARSE_ERROR, parseJsonRpc } from "../../../../core/wire/json-rpc.ts";
import { decodeUtf8, parseJson } from "../../../../core/wire/parse-json.ts";
import { HTTP_DIALECT, MESSAGE_PATH, TOKEN_PATH, VERSION } from "../../codec/card.ts";
import { decodeControl, methodOf, toCancelResult, toClearResult } from "../../codec/control.ts";
import { type DecodedMessage, decodeMessageParams, tappedNotificationId } from "../../codec/decode-message.ts";
import { toFrameError } from "../../codec/errors.ts";
import { toErrorResponse, toResponse } from "../../codec/frames.ts";
import { errorText, isRequestError } from "../../codec/phone-texts.ts";
import { AgentTasks } from "../agent-tasks.ts";
import { NO_INTAKE } from "../ports.ts";
import { AccessDenied, type Authentication, authenticate, issueToken, RefusalLog, sessionScope } from "./access.ts";
import {
  answerTokenRequest,
  authorize,
  deauthorize,
  requireShortBody,
  TokenRequestError,
  tokenErrorReply,
  withAccount,
} from "./login.ts";
import type { Entry } from "./options.ts";
import { cancelTask, clearSession, type SessionContext, sendMessage } from "./session-tasks.ts";
import { respondImmediately, streamReply, tapAnswerReply } from "./stream.ts";

export function createHttpServing(options: {
  /** How an agent is connected to the platform; one without entries has no such endpoint. */
  readonly entriesFor: (agent: string) => readonly Entry[];
  readonly clock: Clock;
  readonly log: Log;
}): readonly SelfAdmittingHttpServing[] {
  const { clock, entriesFor, log } = options;
  const refusals = new RefusalLog(log);
  const refuseHere: SelfAdmittingHttpServing["refuse"] = (error, _exchange, status) => {
    // Without a status, the error was already logged with its agent.
    if (status !== undefined) refusals.note(undefined, error);
    return errorReply(toPublicError(error), null, status);
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
      screen: (head, agent) => refusalOf(agent, () => authenticate(head, entriesFor(agent), agent, clock.now())),
      handle: (head, context, admit) =>
        handle(head, context, entriesFor(context.service.name), { clock, refusals, admit }),
    },
    {
      ...common,
      prefix: TOKEN_PATH,
      allowsAnonymous: true,
      serves: (agent) => entriesFor(agent).some(({ access }) => access.kind === "oauth"),
      screen: (head, agent) => refusalOf(agent, () => requireShortBody(head)),
      async handle(head, { ids, service: { name: agent } }, admit) {
        const refused = refuseWrongEndpoint(head);
        if (refused !== undefined) return refused;
        const tokens = { agent, entries: entriesFor(agent), now: clock.now(), unique: ids.context(), admit };
        try {
          return answerTokenRequest(head, tokens);
        } catch (error) {
          if (error instanceof TokenRequestError) return tokenErrorReply(400, error.message);
          refusals.note(agent, error);
          if (error instanceof AccessDenied) return tokenErrorReply(401, "invalid_client");
          return errorReply(toPublicError(error), null);
        }
      },
    },
  ];
}

interface Tools {
  readonly clock: Clock;
  readonly refusals: RefusalLog;
  readonly admit: AdmitBy;
}

async function handle(
  head: RequestHead,
  context: ServeContext,
  entries: readonly Entry[],
  { admit, ...tools }: Tools,
): Promise<ExchangeReply> {
  const refused = refuseWrongEndpoint(head);
  if (refused !== undefined) return refused;
  let exchange: ExchangeRequest | undefined;
  try {
    const admitted = admit(() => authenticate(head, entries, context.service.name, tools.clock.now()));
    exchange = admitted.exchange;
    return await replyTo({ context, ...admitted, ...tools });
  } catch (error) {
    tools.refusals.note(context.service.name, error);
    return errorReply(toPublicError(error), requestIdOf(exchange, context.limits));
  }
}

/**
 * The id of a request, even of one that is not decoded further: the caller matches the response by it. A caller that was
 * not admitted gets `null`.
 */
function requestIdOf(exchange: ExchangeRequest | undefined, limits: ServeContext["limits"]): JsonRpcId {
  if (exchange === undefined) return null;
  const parsed = parseJsonRpc(exchange.body, limits);
  return parsed.ok ? parsed.request.id : parsed.id;
}

/** Both endpoints accept POST only and have no subpaths. */
function refuseWrongEndpoint({ method, path }: RequestHead): FullReply | undefined {
  if (path !== "" && path !== "/") {
    return errorReply(new ProtocolError("METHOD_NOT_FOUND", "There is nothing at this path."), null, 404);
  }
  if (method === "POST") return undefined;
  const reply = errorReply(new ProtocolError("INVALID_REQUEST", "This path takes POST only."), null, 405);
  return { ...reply, headers: { ...reply.headers, allow: "POST" } };
}

interface PlatformRequest extends Authentication, Omit<Tools, "admit"> {
  readonly exchange: ExchangeRequest;
  readonly context: ServeContext;
}

async function replyTo(platform: PlatformRequest): Promise<ExchangeReply> {
  const { context, exchange } = platform;
  requireMediaType(exchange.headers, isJson);
  const parsed = parseJsonRpc(exchange.body, context.limits);
  if (!parsed.ok) {
    const code = parsed.code === PARSE_ERROR ? "PARSE_ERROR" : "INVALID_REQUEST";
    return refuse(platform, new ProtocolError(code, parsed.message), parsed.id);
  }
  const { id, method } = parsed.request;
  try {
    return await answer(platform, parsed.request);
  } catch (error) {
    return refuse(platform, error, id, methodOf(method) === "authorize");
  }
}

/** `hasOwnText`: the error's message is already meant for users. */
function refuse({ context, entry, refusals }: PlatformRequest, error: unknown, id: JsonRpcId, hasOwnText = false) {
  refusals.note(context.service.name, error);
  const refusal = toPublicError(error);
  return errorReply(refusal, id, undefined, hasOwnText ? undefined : errorText(refusal, entry.language));
}

async function answer(platform: PlatformRequest, request: JsonRpcRequest): Promise<ExchangeReply> {
  const { context, entry, refusals } = platform;
  const { id, method, notification, params } = request;
  const asked = methodOf(method);
  if (notification && asked !== "initialized") {
    throw new ProtocolError("INVALID_REQUEST", "The request needs an id: every method is answered.");
  }
  switch (asked) {
    case "initialize":
      return resultReply(id, initialize(platform));
    case "initialized":
      return { status: 200, headers: {}, body: undefined };
    case "message":
      return answerMessage(platform, request);
    case "cancel": {
      const target = decodeControl(envelopeOf(platform));
      const { id: taskId, state } = await cancelTask(sessionContextOf(platform), target, id);
      if (state === "unknown") refusals.warn(context.service.name, "nothing-to-cancel", NOTHING_TO_CANCEL_HINT);
      return resultReply(id, toCancelResult(taskId ?? target.taskIds[0] ?? String(id), state));
    }
    case "clear":
      return resultReply(
        id,
        toClearResult(await clearSession(sessionContextOf(platform), decodeControl(envelopeOf(platform)))),
      );
    case "authorize":
      return resultReply(id, await authorize(params, entry, context.ids));
    case "deauthorize":
      return resultReply(id, await deauthorize(params, entry));
    case undefined:
      throw new ProtocolError("METHOD_NOT_FOUND", "Method not found.");
  }
}

function initialize({ by, clock, context, entry }: PlatformRequest): object {
  if (by === "session") {
    throw new ProtocolError("UNAUTHENTICATED", "A session is opened by credentials, not by another session.");
  }
  const { sessionTtlMs } = entry;
  const scope = sessionScope(entry, context.service.name);
  const agentSessionId = issueToken(scope, clock.now() + sessionTtlMs, context.ids.context());
  return { version: VERSION, agentSessionId, agentSessionTtl: String(Math.floor(sessionTtlMs / 1_000)) };
}

async function answerMessage(platform: PlatformRequest, { id, params }: JsonRpcRequest): Promise<ExchangeReply> {
  const { context, entry, refusals } = platform;
  const { ids, limits, report, service } = context;
  const { losses, value: decoded } = decodeMessageParams(params ?? {}, { maxItems: limits.maxParts }, ids);
  if (losses.length > 0) report(losses);
  const { language, notifications, prepare, render } = entry;
  const { sessionId, taskId } = decoded;
  await notifications?.registerDevice(decoded);
  const tapped = tappedNotificationId(decoded.events);
  if (notifications !== undefined && tapped !== undefined) {
    return tapAnswerReply(await notifications.readAnswer(tapped), { id, taskId, language }, context);
  }
  const attendance = notifications?.attend(sessionId);
  const onFailure = (error: unknown) => refusals.note(service.name, error);
  const answering = await send(platform, decoded, attendance?.replyTo).catch((error: unknown) => {
    attendance?.left();
    throw error;
  });
  return streamReply(answering, { id, taskId, render, language, attendance, prepare, onFailure }, context);
}

/** Downloading files may take a while, so the user gets a sign of life first. */
async function send(platform: PlatformRequest, decoded: DecodedMessage, replyTo: ReplyTo | undefined) {
  const { intake = NO_INTAKE, language } = platform.entry;
  const message = await withAccount(decoded, platform.entry);
  const context = sessionContextOf(platform);
  if (!intake.hasFiles(message)) return sendMessage(context, decoded, message, replyTo);
  return respondImmediately(
    intake.download(message, language).then((readable) => sendMessage(context, decoded, readable, replyTo)),
  );
}

function sessionContextOf({ caller, clock, context, entry }: PlatformRequest): SessionContext {
  const call: CallContext = { caller, tenant: "", extensions: [], dialect: HTTP_DIALECT };
  const tasks = new AgentTasks(context.service, call, clock);
  return { tasks, cleared: entry.cleared, newContext: context.ids.context };
}

/** Includes members that are not part of JSON-RPC: most requests name their session beside the method. */
function envelopeOf({ context, exchange }: PlatformRequest): Fields {
  return fieldsOf(parseJson(decodeUtf8(exchange.body), context.limits));
}

const NOTHING_TO_CANCEL_HINT = "No task of that id is known, and none runs in that session.";

function resultReply(id: JsonRpcId, result: object): FullReply {
  return jsonReply(200, toResponse(id, result));
}

/** Unlike in A2A, a body that is not a JSON-RPC request has its own HTTP status. */
function statusOf(error: ProtocolError): number {
  return error.code === "PARSE_ERROR" || error.code === "INVALID_REQUEST" ? 400 : httpStatusOf(error);
}

/** `shown` replaces the error's message if a user may read it. */
function errorReply(
  error: ProtocolError,
  id: JsonRpcId,
  status: number = statusOf(error),
  shown: string = error.message,
): FullReply {
  const challenge = status === 401 ? { "www-authenticate": "Bearer" } : undefined;
  const headers = { ...errorHeaders(error), ...challenge };
  // The exact reason, for developers, beside what a phone may show.
  const data = shown !== error.message && isRequestError(error) ? { reason: error.message } : undefined;
  return jsonReply(status, toErrorResponse(id, { ...toFrameError(error, shown), ...(data && { data }) }), headers);
}
