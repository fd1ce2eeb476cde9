/** JSON-RPC 2.0 over HTTP: one URL, the operation in `method`. */

import { ProtocolError, pushConfigNotFound } from "../../model/errors.ts";
import { isObject } from "../../model/json.ts";
import type { Loss } from "../../model/loss.ts";
import type { CallContext, TaskPushNotificationConfig } from "../../model/operation.ts";
import { type ExchangeReply, type ExchangeRequest, jsonReply } from "../../wire/exchange.ts";
import { encodeError, encodeResult, type JsonRpcId, type JsonRpcRequest } from "../../wire/json-rpc.ts";
import type { JsonRpcServing, ServeContext } from "../contract.ts";
import { errorHeaders, toPublicError } from "../shared/errors.ts";
import { eventStreamReply } from "../shared/http/event-stream.ts";
import { httpStatusOf, JsonRpcFraming } from "../shared/http/json-rpc.ts";
import { mapFrames } from "../shared/http/map-frames.ts";
import { idempotencyKeyOf, isJson, requireMediaType } from "../shared/http/requests.ts";
import { VERSION } from "./card.ts";
import { decodeRequest, kindOfMethod, METHODS } from "./decode.ts";
import { type Answer, encodeAnswer, StreamEncoder } from "./encode.ts";
import { toJsonRpcError } from "./errors.ts";

/** The way from a request to an outcome. */

export const DIALECT_NAME = "a2a-v01";

const NO_PARAMS = {};

async function invoke(
  { method, params = NO_PARAMS }: JsonRpcRequest,
  { headers }: ExchangeRequest,
  context: ServeContext,
): Promise<Answer> {
  const { caller, ids, limits, report, service } = context;
  const kind = kindOfMethod(method);
  // What an agent does not do at all is refused before anyone looks at how it was asked for.
  if (kind.startsWith("push-") && service.card.capabilities.pushNotifications !== true) {
    throw new ProtocolError("PUSH_NOTIFICATION_NOT_SUPPORTED", "This agent does not send push notifications.");
  }
  const options = { maxItems: limits.maxParts };
  const { losses, value: operation } = decodeRequest(kind, params, options, headers["last-event-id"], ids);
  if (losses.length > 0) report(losses);
  const idempotencyKey = idempotencyKeyOf(operation, headers, NO_EXTENSIONS);
  const call: CallContext = {
    caller,
    tenant: "",
    extensions: NO_EXTENSIONS,
    dialect: DIALECT_NAME,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
  const outcome =
    operation.kind === "push-get"
      ? await findPushConfig(operation.taskId, call, context)
      : await service.dispatch(operation, call);
  // `dispatch` ties an outcome to its operation, which the compiler cannot follow through a union.
  return { kind: operation.kind, operation, outcome } as Answer;
}

/** 0.1 has no extensions. A resumed stream begins with the task for another reason, too: it tells which artifact is which. */
const NO_EXTENSIONS: readonly string[] = [];

/** 0.1 knows one push config for each task: its own, or else the first that another dialect made. */
async function findPushConfig(
  taskId: string,
  call: CallContext,
  { service }: ServeContext,
): Promise<TaskPushNotificationConfig> {
  const { configs } = await service.dispatch({ kind: "push-list", taskId }, call);
  const config = configs.find(({ id }) => id === taskId) ?? configs[0];
  if (config !== undefined) return config;
  throw pushConfigNotFound(taskId);
}

export const jsonRpc: JsonRpcServing = {
  versions: [VERSION],
  unversioned: true,
  methods: new Set(Object.keys(METHODS)),

  taskIdOf({ params }) {
    return isObject(params) && typeof params.id === "string" ? params.id : undefined;
  },

  async handle(request, exchange, context) {
    const { id } = request;
    try {
      requireMediaType(exchange.headers, isJson);
      const answer = await invoke(request, exchange, context);
      if (answer.kind === "stream" || answer.kind === "subscribe") {
        const { encode } = new StreamEncoder(answer.operation, context.report);
        return eventStreamReply(mapFrames(answer.outcome, encode), {
          keepAliveMs: context.limits.keepAliveMs,
          framing: new JsonRpcFraming(id, toJsonRpcError),
        });
      }
      const losses: Loss[] = [];
      const result = encodeAnswer(answer, losses);
      if (losses.length > 0) context.report(losses);
      return jsonReply(200, encodeResult(id, result));
    } catch (error) {
      return errorReply(toPublicError(error), id);
    }
  },

  refuse: (error, id) => errorReply(toPublicError(error), id),
};

function errorReply(error: ProtocolError, id: JsonRpcId): ExchangeReply {
  return jsonReply(httpStatusOf(error), encodeError(id, toJsonRpcError(error)), errorHeaders(error));
}
