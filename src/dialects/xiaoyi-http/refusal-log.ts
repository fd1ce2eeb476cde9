/** What whoever runs the server should know of requests that were refused. */
import { type ErrorCode, ProtocolError } from "../../model/errors.ts";
import type { Log } from "../../model/ports.ts";
import { AccessDenied, type Denial } from "./access.ts";

type Why = Denial | ErrorCode | "nothing-to-cancel";

/** Some of it repeats what the peer has said. */
const LONGEST_HINT = 200;

/** Says each reason once for each agent: whoever sends one odd request sends many. */
export class RefusalLog {
  readonly #log: Log;
  /** Bounded: there are as many agents as are configured, and the reasons are a closed list. */
  readonly #told = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** `agent` is undefined where the request was refused before anybody asked which it is for. */
  note(agent: string | undefined, error: unknown): void {
    if (!ProtocolError.is(error)) this.#log.error({ agent, err: error }, "A request of Xiaoyi could not be answered.");
    else if (error instanceof AccessDenied) this.warn(agent, error.why, error.hint);
    else this.warn(agent, error.code, error.message.slice(0, LONGEST_HINT));
  }

  warn(agent: string | undefined, why: Why, hint: string): void {
    const told = JSON.stringify([agent, why]);
    if (this.#told.has(told)) return;
    this.#told.add(told);
    this.#log.warn({ agent, why, hint }, "A request of Xiaoyi was refused; others like it are not logged.");
  }
}
