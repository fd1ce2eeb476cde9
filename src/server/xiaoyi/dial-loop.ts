/** Keeps one link open: opens it again whenever it closes, for as long as there is hope. */
import type { Clock, Log, LogFields } from "../../model/ports.ts";
import { type Backoff, type BackoffPolicy, createBackoff } from "../../wire/backoff.ts";
import type { Link, LinkClosure } from "../../wire/link.ts";
import { DialError } from "../../wire/websocket-dial.ts";
import type { WebSocketLink } from "../../wire/websocket-link.ts";

/** `given-up`: too many tries in a row have failed; only a restart of the server begins anew. */
export type LinkState = "connecting" | "up" | "waiting" | "given-up" | "stopped";

interface DialLoopOptions {
  readonly dial: (signal: AbortSignal) => Promise<WebSocketLink>;
  /** Talks over a link until it closes. */
  readonly serve: (link: Link) => Promise<LinkClosure>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** Which link this is, for the log. */
  readonly about: LogFields;
  readonly policy: BackoffPolicy;
}

export const RECONNECT: BackoffPolicy = { baseMs: 2_000, capMs: 60_000, maxTries: 50, resetAfterMs: 10_000 };

/** A link that the platform ends sooner than this was never welcome. */
const EARLY_CLOSE_MS = 10_000;
const POLITE_CLOSURE = 1000;
const INTERNAL_ERROR = 1011;

export class DialLoop {
  #state: LinkState = "connecting";
  readonly #options: DialLoopOptions;
  readonly #backoff: Backoff;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #link: WebSocketLink | undefined;
  /** What was logged last about dialling: the same again is no news. */
  #lastError: string | undefined;
  #explained = false;

  constructor(options: DialLoopOptions) {
    const { clock, policy, random } = options;
    this.#options = options;
    this.#backoff = createBackoff(policy, { random, now: () => clock.now() });
    this.#running = this.#run();
  }

  get state(): LinkState {
    return this.#state;
  }

  /** Closes the link and opens no other. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#link?.close();
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

  /** One link from its opening to its end; nothing is left of it when this resolves. */
  async #connect(signal: AbortSignal): Promise<void> {
    const { clock, dial, serve } = this.#options;
    let link: WebSocketLink;
    try {
      link = await dial(signal);
    } catch (error) {
      if (!signal.aborted) this.#logDialError(error);
      return;
    }
    this.#link = link;
    this.#state = "up";
    this.#lastError = undefined;
    this.#backoff.markConnected();
    this.#options.log.info(this.#options.about, "Linked to Xiaoyi.");
    const since = clock.now();
    if (signal.aborted) link.close();
    const closure = await serve(link).catch((error: unknown) => {
      this.#options.log.error({ ...this.#options.about, err: error }, "The link to Xiaoyi failed unexpectedly.");
      return { code: INTERNAL_ERROR, reason: "" };
    });
    // The platform takes one link of an agent at a time: whatever is left of this one goes before another comes.
    link.terminate("It has ended.");
    await link.closed;
    this.#link = undefined;
    if (!signal.aborted) this.#logClosure(closure, clock.now() - since);
  }

  #pause(milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        signal.removeEventListener("abort", done);
        resolve();
      };
      const cancel = this.#options.clock.after(milliseconds, done);
      signal.addEventListener("abort", done);
    });
  }

  #logDialError(error: unknown): void {
    const { about, log } = this.#options;
    const { failure, message, status } = error instanceof DialError ? error : toDialError(error);
    if (this.#lastError === message) return;
    this.#lastError = message;
    const fields = { ...about, failure, ...(status === undefined ? undefined : { status }), reason: message };
    log.warn(fields, HINTS.get(status) ?? "The link to Xiaoyi could not be opened; it will be tried again.");
  }

  #logClosure({ code, reason }: LinkClosure, lasted: number): void {
    const { about, log } = this.#options;
    log.warn({ ...about, code, reason }, "The link to Xiaoyi has closed; it will be opened again.");
    if (this.#explained || code !== POLITE_CLOSURE || lasted >= EARLY_CLOSE_MS) return;
    this.#explained = true;
    log.warn(
      about,
      "Xiaoyi closed the link as soon as it was open. Does another process use the same agent id? Does the traffic leave through a VPN?",
    );
  }

  #giveUp(): void {
    this.#state = "given-up";
    this.#options.log.error(
      this.#options.about,
      "The link to Xiaoyi was given up after too many failures in a row. Everything else is still served; restart the server to try again.",
    );
  }
}

function toDialError(error: unknown): DialError {
  return new DialError("unreachable", error instanceof Error ? error.message : String(error));
}

const HINTS: ReadonlyMap<number | undefined, string> = new Map([
  [401, "Xiaoyi refused the credentials of the link. Are ak and sk right, and is this machine's clock?"],
  [403, "Xiaoyi refused the link: the agent is not eligible. Is agentId right, and does it belong to ak?"],
]);
