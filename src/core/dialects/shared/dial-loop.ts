/** Maintains one connection: reopens it whenever it closes, until too many attempts in a row have failed. */

import { type Backoff, createBackoff } from "../../model/backoff.ts";
import { omitUndefined } from "../../model/json.ts";
import { type Closure, type Connection, INTERNAL_ERROR_CLOSURE } from "../../wire/connection.ts";
import { DialError } from "../../wire/dial-error.ts";
import type { DialledConnection } from "../carrier.ts";
import type { DialectTools } from "../contract.ts";

/**
 * `given-up`: too many attempts in a row have failed; only a restart of the server tries again. `standby`: another node
 * has the connection.
 */
export type ConnectionState = "connecting" | "up" | "waiting" | "given-up" | "stopped" | "standby";

export type DialLoopTools = Pick<DialectTools, "clock" | "log" | "random">;

export class DialLoop {
  #state: ConnectionState = "connecting";
  readonly #connection: DialledConnection;
  readonly #tools: DialLoopTools;
  readonly #backoff: Backoff;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #current: Connection | undefined;
  /** The last logged dial error: repeated errors are not logged. */
  #lastError: string | undefined;
  #explained = false;

  constructor(connection: DialledConnection, tools: DialLoopTools) {
    const { clock, random } = tools;
    this.#connection = connection;
    this.#tools = tools;
    this.#backoff = createBackoff(connection.policy, { random, now: () => clock.now() });
    this.#running = this.#run();
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Closes the connection and does not reopen it. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#current?.close();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#state = "connecting";
      await this.#connect(signal);
      if (signal.aborted) break;
      const wait = this.#backoff.next();
      if (wait === undefined) {
        this.#giveUp();
        return;
      }
      this.#state = "waiting";
      await this.#pause(wait, signal);
    }
    this.#state = "stopped";
  }

  /** Runs one connection; it is fully closed when this resolves. */
  async #connect(signal: AbortSignal): Promise<void> {
    const { about, label } = this.#connection;
    const { clock, log } = this.#tools;
    let current: Connection;
    try {
      current = await this.#connection.dial(signal);
    } catch (error) {
      if (!signal.aborted) this.#logDialError(error);
      return;
    }
    this.#current = current;
    this.#state = "up";
    this.#lastError = undefined;
    this.#backoff.markConnected();
    log.info(about, `Connected to ${label}.`);
    const since = clock.now();
    if (signal.aborted) current.close();
    const closure = await this.#connection.converse(current).catch((error: unknown) => {
      log.error({ ...about, err: error }, `The connection to ${label} failed unexpectedly.`);
      return { code: INTERNAL_ERROR_CLOSURE, reason: "" };
    });
    // Platforms may allow one connection at a time: this one is closed before the next is opened.
    current.close();
    await current.closed;
    this.#current = undefined;
    if (!signal.aborted) this.#logClosure(closure, clock.now() - since);
  }

  #pause(milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        signal.removeEventListener("abort", done);
        resolve();
      };
      const cancel = this.#tools.clock.after(milliseconds, done);
      signal.addEventListener("abort", done);
    });
  }

  #logDialError(error: unknown): void {
    const { about, label } = this.#connection;
    const { failure, message, status } = error instanceof DialError ? error : toDialError(error);
    if (this.#lastError === message) return;
    this.#lastError = message;
    const fields = { ...about, failure, ...omitUndefined({ status }), reason: message };
    const hint = status === undefined ? undefined : this.#connection.explain?.({ kind: "refused", status });
    this.#tools.log.warn(fields, hint ?? `Could not connect to ${label}; will retry.`);
  }

  #logClosure(closure: Closure, lastedMs: number): void {
    const { about, label } = this.#connection;
    this.#tools.log.warn({ ...about, ...closure }, `The connection to ${label} has closed; will reconnect.`);
    const hint = this.#explained ? undefined : this.#connection.explain?.({ kind: "closed", lastedMs, ...closure });
    if (hint === undefined) return;
    this.#explained = true;
    this.#tools.log.warn(about, hint);
  }

  #giveUp(): void {
    const { about, label } = this.#connection;
    this.#state = "given-up";
    this.#tools.log.error(
      about,
      `Gave up connecting to ${label} after too many failures in a row. Everything else is still served; restart the server to try again.`,
    );
  }
}

function toDialError(error: unknown): DialError {
  return new DialError("unreachable", error instanceof Error ? error.message : String(error));
}
