/** Requests of this dialect as operations of the model. */
import { invalidParams } from "../../model/errors.ts";
import { type Lossy, NO_LOSSES } from "../../model/loss.ts";
import type { Operation } from "../../model/operation.ts";
import type { CodecTools } from "../contract.ts";
import { type Members, readRequest } from "../shared/early-reading.ts";
import type { ReadOptions } from "../shared/proto-json-reading.ts";
import { cursorIn } from "../shared/request-headers.ts";
import { readMessage } from "./heard.ts";
import type { SpokenKind } from "./http-routes.ts";

export type SpokenOperation = Extract<Operation, { readonly kind: SpokenKind }>;

/** What a request says, wherever in it. */
export interface RequestWords {
  /** In the path; empty where the path names no task. */
  readonly id: string;
  readonly query: string;
  /** Undefined where there is none. */
  readonly body: unknown;
  readonly lastEventId: string | undefined;
}

export function decodeRequest(
  kind: SpokenKind,
  { body, id, lastEventId, query }: RequestWords,
  options: ReadOptions,
  ids: CodecTools["ids"],
): Lossy<SpokenOperation> {
  switch (kind) {
    case "send":
    case "stream":
      return readRequest(body ?? {}, options, (members) => readSend(kind, members, ids));
    case "get": {
      const historyLength = historyLengthIn(query);
      return lossless({ kind, id, ...(historyLength !== undefined && { historyLength }) });
    }
    case "cancel":
      return readRequest(body ?? {}, options, (members) => {
        const metadata = members.struct("metadata");
        return { kind, id, ...(metadata !== undefined && { metadata }) };
      });
    case "subscribe": {
      const after = cursorIn(lastEventId);
      return lossless({ kind, id, ...(after !== undefined && { after }) });
    }
  }
}

function lossless(value: SpokenOperation): Lossy<SpokenOperation> {
  return { value, losses: NO_LOSSES };
}

function readSend(kind: "send" | "stream", members: Members, ids: CodecTools["ids"]): SpokenOperation {
  const message = members.requiredObject("message", (said) => readMessage(said, ids.message));
  const metadata = members.struct("metadata");
  return { kind, message, asTask: true, ...(metadata !== undefined && { metadata }) };
}

const COUNT = /^\d{1,9}$/;

function historyLengthIn(query: string): number | undefined {
  const given = query === "" ? null : new URLSearchParams(query).get("historyLength");
  if (given === null || given === "") return undefined;
  if (!COUNT.test(given)) throw invalidParams("historyLength", "must be an integer not below 0");
  return Number(given);
}
