/** The way from a request to an outcome. */
import { ProtocolError, pushConfigNotFound } from "../../model/errors.ts";
import type { Call } from "../../model/operation.ts";
import type { TaskPushNotificationConfig } from "../../model/push.ts";
import type { ExchangeRequest } from "../../wire/exchange.ts";
import type { JsonRpcRequest } from "../../wire/json-rpc.ts";
import type { ServeContext } from "../contract.ts";
import { idempotencyKeyOf } from "../shared/request-headers.ts";
import { decodeRequest, kindOfMethod } from "./decode.ts";
import type { Answer } from "./encode.ts";

export const DIALECT_NAME = "a2a-v01";

const NO_PARAMS = {};

export async function invoke(
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
  const call: Call = {
    caller,
    tenant: "",
    extensions: NO_EXTENSIONS,
    dialect: DIALECT_NAME,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
  const outcome =
    operation.kind === "push-get"
      ? await theConfigOf(operation.taskId, call, context)
      : await service.dispatch(operation, call);
  // `dispatch` ties an outcome to its operation, which the compiler cannot follow through a union.
  return { kind: operation.kind, operation, outcome } as Answer;
}

/** 0.1 has no extensions. A resumed stream begins with the task for another reason, too: it tells which artifact is which. */
const NO_EXTENSIONS: readonly string[] = [];

/** 0.1 knows one push config for each task: its own, or else the first that another dialect made. */
async function theConfigOf(taskId: string, call: Call, { service }: ServeContext): Promise<TaskPushNotificationConfig> {
  const { configs } = await service.dispatch({ kind: "push-list", taskId }, call);
  const config = configs.find(({ id }) => id === taskId) ?? configs[0];
  if (config !== undefined) return config;
  throw pushConfigNotFound(taskId);
}
