/** Xiaoyi's JSON: what an agent says to the platform. Members that are undefined are left out by `JSON.stringify`. */
import type { JsonObject } from "../../model/json.ts";
import type { JsonRpcId } from "../../wire/json-rpc.ts";

export interface TextWire {
  readonly kind: "text";
  readonly text: string;
}

/** Shown as a bubble of its own that folds away when the answer comes; empty text shows three dots. */
export interface ReasoningWire {
  readonly kind: "reasoningText";
  readonly reasoningText: string;
}

export interface FileWire {
  readonly kind: "file";
  readonly file: {
    readonly name?: string | undefined;
    readonly mimeType?: string | undefined;
    readonly uri?: string;
    readonly bytes?: string;
    /** Of a file that was uploaded to the platform. */
    readonly fileId?: string;
  };
}

export interface DataWire {
  readonly kind: "data";
  readonly data: JsonObject;
}

export type PartWire = TextWire | ReasoningWire | FileWire | DataWire;

export type StateWord = "submitted" | "working" | "input-required" | "completed" | "canceled" | "failed" | "unknown";

export interface StatusResult {
  readonly taskId: string;
  readonly kind: "status-update";
  readonly final: boolean;
  readonly status: {
    readonly state: StateWord;
    readonly message?: { readonly role: "agent"; readonly parts: readonly PartWire[] };
  };
}

/** `append`, `lastChunk` and `final` stand beside the artifact, not in it. */
export interface ArtifactResult {
  readonly taskId: string;
  readonly kind: "artifact-update";
  readonly append: boolean;
  readonly lastChunk: boolean;
  readonly final: boolean;
  readonly artifact: { readonly artifactId: string; readonly parts: readonly PartWire[] };
}

/** Stands beside the result, also where nothing is wrong: `code` is 0 then. */
export interface FrameError {
  readonly code: number;
  readonly message: string;
}

export const SUCCESS: FrameError = Object.freeze({ code: 0, message: "" });
/** One whole answer, or one frame of a stream. Every frame echoes the id of its request. */
export function toResponse(id: JsonRpcId, result: object, error: FrameError = SUCCESS): string {
  return JSON.stringify({ jsonrpc: "2.0", id, result, error });
}

export function toRefusal(id: JsonRpcId, error: FrameError): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error });
}
