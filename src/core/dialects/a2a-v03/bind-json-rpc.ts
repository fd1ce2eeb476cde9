/** JSON-RPC 2.0 over HTTP: one URL, the operation in `method`. Results are bare, distinguished by their `kind`. */

import { type ProtocolError, pushConfigNotFound } from "../../model/errors.ts";
import { isObject } from "../../model/json.ts";
import type { FrameStream, SendOutcome, TaskPushNotificationConfig } from "../../model/operation.ts";
import { type ExchangeReply, type ExchangeRequest, jsonReply } from "../../wire/exchange.ts";
import { encodeError, encodeResult, type JsonRpcId } from "../../wire/json-rpc.ts";
import { encodeSseLine } from "../../wire/sse.ts";
import type { ServeContext } from "../contract.ts";
import { errorHeaders } from "../shared/errors.ts";
import { EVENT_STREAM_HEADERS, eventStreamReply } from "../shared/http/event-stream.ts";
import { jsonRpcFraming, serveJsonRpc } from "../shared/http/json-rpc.ts";
import { requireCapability } from "../shared/http/requests.ts";
import { toErrorObject } from "./errors.ts";
import { invoke } from "./invoke.ts";
import { toWireCard } from "./json/card.ts";
import { decodeRequest, kindOfMethod, METHODS, type RequestedOperation } from "./json/decode.ts";
import {
  type EndsStream,
  endsSendStream,
  endsSubscription,
  toWireEvent,
  toWireMessage,
  toWireTask,
  toWireTaskPushConfig,
} from "./json/encode.ts";
import { defaultPushConfigId } from "./resource-names.ts";
import { VERSION } from "./service-parameters.ts";

const NO_PARAMS = {};

export const jsonRpc = serveJsonRpc({
  versions: [VERSION, "0.2"],
  unversioned: true,
  methods: new Set(Object.keys(METHODS)),
  toError: toErrorObject,

  taskIdOf({ params }) {
    if (!isObject(params)) return undefined;
    const named = params.id ?? params.taskId ?? params.task_id;
    return typeof named === "string" ? named : undefined;
  },

  async answer({ id, method, params = NO_PARAMS }, { headers }, context) {
    const kind = kindOfMethod(method);
    requireCapability(kind, context.service);
    const { value, losses } = decodeRequest(kind, params, {
      maxItems: context.limits.maxParts,
      lastEventId: headers["last-event-id"],
    });
    if (losses.length > 0) context.report(losses);
    return answer(value, id, headers, context);
  },

  errorReply: (error, { id, method }, { headers }) =>
    wantsEvents(method, headers.accept) ? errorEventReply(error, id) : undefined,
});

const STREAMING: ReadonlySet<string> = new Set(["message/stream", "tasks/resubscribe"]);

/** Clients of this version that accept only a stream cannot decode an error in any other form. */
function wantsEvents(method: string, accept: string | undefined): boolean {
  return STREAMING.has(method) && accept !== undefined && /^\s*text\/event-stream\s*(?:;[^,]*)?$/i.test(accept);
}

function errorEventReply(error: ProtocolError, id: JsonRpcId): ExchangeReply {
  const body = encodeSseLine(encodeError(id, toErrorObject(error)));
  return { status: 200, headers: { ...EVENT_STREAM_HEADERS, ...errorHeaders(error) }, body };
}

type Headers = ExchangeRequest["headers"];

async function answer(
  asked: RequestedOperation,
  id: JsonRpcId,
  headers: Headers,
  context: ServeContext,
): Promise<ExchangeReply> {
  switch (asked.kind) {
    case "send": {
      const { outcome, headers: more } = await invoke(asked, headers, context);
      return resultReply(id, toWireOutcome(outcome), more);
    }
    case "stream":
    case "subscribe": {
      const { outcome, headers: more } = await invoke(asked, headers, context);
      return streamReply(outcome, id, asked.kind === "stream" ? endsSendStream : endsSubscription, more, context);
    }
    case "get":
    case "cancel": {
      const { outcome, headers: more } = await invoke(asked, headers, context);
      return resultReply(id, toWireTask(outcome), more);
    }
    case "push-create":
    case "push-get": {
      const { outcome, headers: more } = await invoke(asked, headers, context);
      return resultReply(id, toWireTaskPushConfig(outcome, asked.taskId), more);
    }
    case "push-first": {
      const configs = await allPushConfigs(asked.taskId, headers, context);
      const config = configs.find(({ id }) => id === defaultPushConfigId(asked.taskId)) ?? configs[0];
      if (config === undefined) throw pushConfigNotFound(asked.taskId);
      return resultReply(id, toWireTaskPushConfig(config, asked.taskId));
    }
    case "push-list": {
      const configs = await allPushConfigs(asked.taskId, headers, context);
      return resultReply(
        id,
        configs.map((config) => toWireTaskPushConfig(config, asked.taskId)),
      );
    }
    case "push-delete": {
      const { headers: more } = await invoke(asked, headers, context);
      return resultReply(id, null, more);
    }
    case "extended-card": {
      const { outcome, headers: more } = await invoke(asked, headers, context);
      const { value, losses } = toWireCard(outcome);
      if (losses.length > 0) context.report(losses);
      return resultReply(id, value, more);
    }
  }
}

function resultReply(id: JsonRpcId, result: object | null, headers?: Readonly<Record<string, string>>): ExchangeReply {
  return jsonReply(200, encodeResult(id, JSON.stringify(result)), headers);
}

function toWireOutcome(outcome: SendOutcome): object {
  return "task" in outcome ? toWireTask(outcome.task) : toWireMessage(outcome.message);
}

/** 0.3 has no pagination. The number of configs per task is bounded. */
async function allPushConfigs(
  taskId: string,
  headers: Headers,
  context: ServeContext,
): Promise<TaskPushNotificationConfig[]> {
  const all: TaskPushNotificationConfig[] = [];
  let pageToken = "";
  do {
    const { outcome } = await invoke(
      pageToken === "" ? { kind: "push-list", taskId } : { kind: "push-list", taskId, pageToken },
      headers,
      context,
    );
    all.push(...outcome.configs);
    // Prevents an endless loop over a page without new configs.
    const { nextPageToken } = outcome;
    pageToken = outcome.configs.length === 0 || nextPageToken === pageToken ? "" : nextPageToken;
  } while (pageToken !== "");
  return all;
}

function streamReply(
  frames: FrameStream,
  id: JsonRpcId,
  ends: EndsStream,
  headers: Readonly<Record<string, string>> | undefined,
  { limits }: ServeContext,
): ExchangeReply {
  const framing = jsonRpcFraming(id, toErrorObject, ({ event }) => JSON.stringify(toWireEvent(event, ends)));
  return eventStreamReply(frames, { keepAliveMs: limits.keepAliveMs, headers, framing });
}
