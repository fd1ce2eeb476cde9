/** Requests to cancel or clear that wait for their answer. */

import { ProtocolError } from "../../model/errors.ts";
import { isRecord } from "../shared/proto/json-reading.ts";
import { isSuccess, readError } from "../xiaoyi/errors.ts";
import type { HeardResponse } from "./call-frames.ts";

interface Control {
  readonly settle: (state: string) => void;
  readonly fail: (error: ProtocolError) => void;
}

export function givenUp(): ProtocolError {
  return new ProtocolError("UNAVAILABLE", "Whoever asked did not wait for the answer.");
}

export class Controls {
  readonly #open = new Map<string, Control>();

  /** What became of it, in the agent's word. Agents answer under any of the `ids`. */
  open(ids: readonly string[], signal: AbortSignal): Promise<string> {
    return new Promise<string>((resolve, reject) => {
      const close = () => {
        signal.removeEventListener("abort", onAbort);
        for (const id of ids) if (this.#open.get(id) === control) this.#open.delete(id);
      };
      const control: Control = {
        settle: (state) => {
          close();
          resolve(state);
        },
        fail: (error) => {
          close();
          reject(error);
        },
      };
      const onAbort = () => control.fail(givenUp());
      signal.addEventListener("abort", onAbort);
      for (const id of ids) this.#open.set(id, control);
    });
  }

  /** Whether the response was for one of these. */
  answer({ error, ids, result }: HeardResponse): boolean {
    const control = ids.map((id) => this.#open.get(id)).find((known) => known !== undefined);
    if (control === undefined) return false;
    if (error !== undefined && !isSuccess(error) && result === undefined) {
      control.fail(readError(error));
      return true;
    }
    const state = controlState(result);
    if (state === undefined) return false;
    control.settle(state);
    return true;
  }

  fail(error: ProtocolError): void {
    for (const control of new Set(this.#open.values())) control.fail(error);
  }
}

/** A status that is no frame of an answer: these say which kind they are, or whether they are the last. */
function controlState(result: HeardResponse["result"]): string | undefined {
  if (result === undefined || result.kind !== undefined || result.final !== undefined) return undefined;
  const state = isRecord(result.status) ? result.status.state : undefined;
  return typeof state === "string" ? state : undefined;
}
