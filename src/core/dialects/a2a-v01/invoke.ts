/** From request to outcome. */
import { pushConfigNotFound } from "../../model/errors.ts";
import type { CallContext, TaskPushNotificationConfig } from "../../model/operation.ts";
import type { ExchangeRequest } from "../../wire/exchange.ts";
import type { JsonRpcRequest } from "../../wire/json-rpc.ts";
import type { ServeContext } from "../contract.ts";
import { createCall, requireCapability } from "../shared/http/requests.ts";
import { decodeRequest, kindOfMethod } from "./decode.ts";
import type { Answer } from "./encode.ts";

export const DIALECT_NAME = "a2a-v01";

const NO_PARAMS = {};

/**
 * 0.1 has no extensions to request. A resumed stream also has to start with the task, since the task determines the
 * indexes of artifacts.
 */
export async function invoke(
  { method, params = NO_PARAMS }: JsonRpcRequest,
  { headers }: ExchangeRequest,
  context: ServeContext,
): Promise<Answer> {
  const { ids, limits, report, service } = context;
  const kind = kindOfMethod(method);
  requireCapability(kind, service);
  const options = { maxItems: limits.maxParts };
  const { losses, value: operation } = decodeRequest(kind, params, options, headers["last-event-id"], ids);
  if (losses.length > 0) report(losses);
  const call = { ...createCall(operation, headers, context, DIALECT_NAME), cancelsOnce: true };
  const outcome =
    operation.kind === "push-get"
      ? await findPushConfig(operation.taskId, call, context)
      : await service.dispatch(operation, call);
  // `dispatch` ties an outcome to its operation, which the compiler cannot follow through a union.
  return { kind: operation.kind, operation, outcome } as Answer;
}

/** 0.1 has one push config per task: its own, else the first that was created in another dialect. */
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
