/** Decodes requests and responses of this dialect. */

import { invalidParams } from "../../model/errors.ts";
import type { StreamEvent } from "../../model/event.ts";
import { type Lossy, NO_LOSSES } from "../../model/loss.ts";
import type { Operation } from "../../model/operation.ts";
import type { CodecTools } from "../contract.ts";
import { parseLastEventId } from "../shared/http/requests.ts";
import { type Members, readRequest } from "../shared/json-members.ts";
import { readArtifact, readMessage, readTask } from "../shared/legacy/decode.ts";
import type { ReadOptions } from "../shared/proto/json-reading.ts";
import { FORM } from "./encode.ts";
import type { SupportedKind } from "./http-routes.ts";
import { LOSSES } from "./losses.ts";

/** A server that does not stream may return the bare task, as for a send. */
export function readStreamEvent(members: Members): StreamEvent | undefined {
  if (members.raw("artifact") !== undefined) return readArtifactFrame(members);
  if (members.raw("task") === undefined) {
    if (members.raw("status") !== undefined) return { task: readTask(members, FORM) };
    members.reading.lose(LOSSES.unknownEvent);
    return undefined;
  }
  return { task: members.requiredObject("task", (task) => readTask(task, FORM)) };
}

function readArtifactFrame(members: Members): StreamEvent {
  const taskId = members.requiredText("taskId");
  const contextId = members.text("contextId") ?? "";
  const metadata = members.struct("metadata");
  const received = members.requiredObject("artifact", (artifact) => readArtifact(artifact, FORM));
  return { artifactUpdate: { taskId, contextId, ...received, metadata } };
}

export type SupportedOperation = Extract<Operation, { readonly kind: SupportedKind }>;

/** The fields of a request, from path, query, body and headers. */
interface RequestFields {
  /** From the path; empty if the path has no task id. */
  readonly id: string;
  readonly query: string;
  /** Undefined if there is none. */
  readonly body: unknown;
  readonly lastEventId: string | undefined;
}

export function decodeRequest(
  kind: SupportedKind,
  { body, id, lastEventId, query }: RequestFields,
  options: ReadOptions,
  ids: CodecTools["ids"],
): Lossy<SupportedOperation> {
  switch (kind) {
    case "send":
    case "stream":
      return readRequest(body ?? {}, options, (members) => readSend(kind, members, ids));
    case "get": {
      const historyLength = historyLengthIn(query);
      return lossless({ kind, id, historyLength });
    }
    case "cancel":
      return readRequest(body ?? {}, options, (members) => {
        const metadata = members.struct("metadata");
        return { kind, id, metadata };
      });
    case "subscribe": {
      const after = parseLastEventId(lastEventId);
      return lossless({ kind, id, after });
    }
  }
}

function lossless(value: SupportedOperation): Lossy<SupportedOperation> {
  return { value, losses: NO_LOSSES };
}

function readSend(kind: "send" | "stream", members: Members, ids: CodecTools["ids"]): SupportedOperation {
  const message = members.requiredObject("message", (inner) => readMessage(inner, FORM, ids.message));
  const metadata = members.struct("metadata");
  return { kind, message, alwaysTask: true, metadata };
}

const COUNT = /^\d{1,9}$/;

function historyLengthIn(query: string): number | undefined {
  const given = query === "" ? null : new URLSearchParams(query).get("historyLength");
  if (given === null || given === "") return undefined;
  if (!COUNT.test(given)) throw invalidParams("historyLength", "must be an integer not below 0");
  return Number(given);
}
