import type { Peer } from "../../core/agents/forward.ts";
import type { UpstreamStatus } from "../../core/agents/upstream-of.ts";
import type { AgentCaller } from "../../core/client/call/agent-caller.ts";
import type { TaskOwner } from "../../core/client/call/task-owner.ts";
import { type FetchedCard, fetchCard } from "../../core/client/card/fetch-card.ts";
import { connectCaller, type Exchanger } from "../../core/client/connect.ts";
import { dialectNames } from "../../core/client/dialect-names.ts";
import { abilitiesOf, unpublishedCard } from "../../core/client/dialects.ts";
import { ConnectionError, changeError, redactUrl } from "../../core/client/errors.ts";
import {
  type ConnectOptions,
  DEFAULT_STREAM_RETRY,
  type Notice,
  type RetryOptions,
} from "../../core/client/options.ts";
import { SharedRequest } from "../../core/client/transport/shared-request.ts";
import type { Signal } from "../../core/model/abort.ts";
import { backoffDelay } from "../../core/model/backoff.ts";
import type { AgentCard, AgentInterface } from "../../core/model/card.ts";
import { ProtocolError } from "../../core/model/errors.ts";
import { omitUndefined } from "../../core/model/json.ts";
import type { Loss } from "../../core/model/loss.ts";
import type { CallContext, Operation, OutcomeOf } from "../../core/model/operation.ts";
import type { Clock, Log } from "../../core/model/ports.ts";
import type { BreakerPolicy } from "./circuit-breaker.ts";
import { isConnectionFailure, UpstreamHealth } from "./upstream-health.ts";

export interface UpstreamOptions {
  /** Name of the agent that is served from it, for messages. */
  readonly agent: string;
  readonly url: string;
  /** If it was just read; default: it is read when the upstream is first called. */
  readonly card?: FetchedCard;
  readonly connect: Omit<ConnectOptions, "signal" | "onNotice" | "hops" | "cardUrl">;
  /** Makes the calls over HTTP in place of the `fetch` of `connect`, which then only reads the card. */
  readonly exchange?: Exchanger;
  /** Which interfaces of the card may be called; `fetch` and `exchange` check addresses over HTTP themselves. */
  readonly mayCall?: (entry: AgentInterface) => boolean;
  /** Receives every new card before it is used. */
  readonly onCard?: (card: AgentCard) => void;
  /** False: called as one that does not stream, whatever its card says. */
  readonly streaming?: boolean | undefined;
  /** Maximum time for the answer of an upstream that does not stream. */
  readonly answerMs?: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** How often the card is read again. */
  readonly refreshMs?: number;
  readonly breaker?: BreakerPolicy;
}

const DEFAULT_REFRESH_MS = 300_000;
const DEFAULT_BREAKER: BreakerPolicy = { threshold: 5, baseMs: 1_000, capMs: 60_000 };
const DEFAULT_ANSWER_MS = 600_000;
/** Assumed until the card is read: tasks of an earlier process are then continued and not failed. */
const ASSUMED_DIALECT = dialectNames()[0] as string;

type ReportLosses = (dialect: string, losses: readonly Loss[]) => void;

/** A remote agent: connects when it is first called, and reads the card in the background. */
export class Upstream implements Peer {
  readonly #options: UpstreamOptions;
  readonly #health: UpstreamHealth;
  readonly #name: string;
  readonly #loading = new SharedRequest((signal) => this.#readCard(signal));
  readonly #waiting = new SharedRequest((signal) => this.#readCard(signal, DEFAULT_STREAM_RETRY));
  /** What the calls to it share. */
  readonly #calls: Omit<TaskOwner, "signal">;
  #reportLosses: ReportLosses = () => {};
  #caller: AgentCaller | undefined;
  #fetched: FetchedCard | undefined;
  #cardProblem: string | undefined;
  #refreshFailures = 0;
  #stopTimer: (() => void) | undefined;
  #isStarted = false;

  constructor(options: UpstreamOptions) {
    this.#options = options;
    const url = redactUrl(options.url).replace(/\/$/, "");
    this.#name = `Upstream ${url} of agent ${options.agent}`;
    const onRecovery = () => this.#scheduleRefresh(0);
    this.#health = new UpstreamHealth({ ...options, url, breaker: options.breaker ?? DEFAULT_BREAKER, onRecovery });
    this.#calls = {
      acquire: () => this.#acquire(),
      countSuccess: () => this.#health.countSuccess(),
      countFailure: (error, isAborted) => this.#health.countFailure(error, isAborted),
      explain: (error) => this.#explain(error),
    };
  }

  get status(): UpstreamStatus {
    return this.#health.status;
  }

  /** The newest usable card; undefined as long as none was read. */
  get card(): AgentCard | undefined {
    return this.#fetched?.card;
  }

  get isConnected(): boolean {
    return this.#caller !== undefined;
  }

  /** The dialect in use, once it is connected. */
  get dialect(): string | undefined {
    return this.#caller?.interface.dialect;
  }

  get can() {
    return this.#caller?.can ?? abilitiesOf(this.#options.connect.dialect ?? ASSUMED_DIALECT);
  }

  get recognizesRepeats(): boolean {
    return this.#caller?.recognizesRepeats === true;
  }

  /** Reads the card now and from time to time, until `close`. */
  start(reportLosses: ReportLosses): void {
    this.#reportLosses = reportLosses;
    this.#isStarted = true;
    void this.#refresh();
  }

  /** Stops reading the card. Calls continue. */
  close(): void {
    this.#isStarted = false;
    this.#stopTimer?.();
  }

  /**
   * Resolves once the upstream can be called; rejects with UNAVAILABLE. `isPatient`: outlasts a restart of the upstream,
   * because it already works on the task.
   */
  async connect(signal?: Signal, isPatient = false): Promise<AgentCaller> {
    if (this.#caller !== undefined) return this.#caller;
    try {
      if (isPatient) return await this.#waiting.join(signal);
      if (!this.#loading.isMade) this.#acquire();
      return await this.#loading.join(signal);
    } catch (error) {
      throw this.#explain(error);
    }
  }

  async dispatch<O extends Operation>(operation: O, call: CallContext): Promise<OutcomeOf<O>> {
    const caller = this.#caller ?? (await this.connect(call.signal));
    const { hops, idempotencyKey, signal } = call;
    const { trace } = call.caller;
    const timeoutMs = this.#answerTime(caller, operation);
    const options = omitUndefined({ hops, idempotencyKey, timeoutMs, trace });
    if (operation.kind === "stream" || operation.kind === "subscribe") {
      return caller.dispatch(operation, { ...options, owner: { ...this.#calls, signal } });
    }
    this.#acquire();
    try {
      const outcome = await caller.dispatch(operation, { ...options, ...(signal && { signal }) });
      this.#health.countSuccess();
      return outcome;
    } catch (error) {
      this.#health.countFailure(error, signal?.aborted === true);
      throw this.#explain(error);
    }
  }

  /** Reads the card and, if it is new, connects by it. A card that cannot be used does not replace an earlier one. */
  async #readCard(signal: AbortSignal, retry?: RetryOptions): Promise<AgentCaller> {
    const { card, connect, exchange, mayCall = () => true, streaming, url } = this.#options;
    try {
      const given = this.#caller === undefined ? card : undefined;
      const fetched = given ?? (await fetchCard(url, { ...connect, signal, ...(retry && { retry }) }));
      if (this.#caller === undefined || fetched.raw !== this.#fetched?.raw) {
        const supportedInterfaces = fetched.card.supportedInterfaces.filter(mayCall);
        const capabilities = { ...fetched.card.capabilities, ...(streaming === false && { streaming }) };
        const callable = { ...fetched.card, capabilities, supportedInterfaces };
        const onNotice = (notice: Notice) => this.#notice(notice);
        this.#options.onCard?.(fetched.card);
        this.#caller = await connectCaller(callable, { ...connect, cardUrl: fetched.url, onNotice }, exchange);
        this.#fetched = fetched;
      }
      this.#cardProblem = undefined;
      if (unpublishedCard(connect.dialect, url) === undefined) this.#health.countSuccess();
      else this.#health.countNothing();
      return this.#caller;
    } catch (error) {
      if (this.#caller === undefined || isTemporary(error)) {
        this.#health.countFailure(error, signal.aborted);
        throw error;
      }
      this.#health.countNothing();
      this.#warnOfCard(error);
      return this.#caller;
    }
  }

  async #refresh(): Promise<void> {
    try {
      await this.#loading.join(undefined);
      this.#refreshFailures = 0;
      this.#scheduleRefresh(this.#options.refreshMs ?? DEFAULT_REFRESH_MS);
    } catch {
      const { breaker: { baseMs, capMs } = DEFAULT_BREAKER, random } = this.#options;
      this.#refreshFailures++;
      this.#scheduleRefresh(backoffDelay(this.#refreshFailures, baseMs, capMs, random()));
    }
  }

  #scheduleRefresh(milliseconds: number): void {
    this.#stopTimer?.();
    if (this.#isStarted) this.#stopTimer = this.#options.clock.after(milliseconds, () => void this.#refresh());
  }

  #warnOfCard(error: unknown): void {
    const { agent, log } = this.#options;
    const reason = error instanceof Error ? error.message : String(error);
    if (reason === this.#cardProblem) return;
    this.#cardProblem = reason;
    log.warn({ agent, upstream: this.status.url, reason }, "Upstream's new card cannot be used; the last one is");
  }

  /** Throws UNAVAILABLE while calls are refused. */
  #acquire(): void {
    const retryAfter = this.#health.acquire();
    if (retryAfter === 0) return;
    const message = `${this.#name}: not reachable; the next attempt is in ${retryAfter} s.`;
    throw new ProtocolError("UNAVAILABLE", message, { retryAfter });
  }

  #notice({ kind, loss, message }: Notice): void {
    const { agent, log } = this.#options;
    if (loss !== undefined) this.#reportLosses(this.dialect ?? "", [loss]);
    else log.debug({ agent, upstream: this.status.url, kind }, message);
  }

  /** The caller of the agent has to know whose error it is. */
  #explain(error: unknown): unknown {
    if (ConnectionError.is(error)) {
      return new ProtocolError("UNAVAILABLE", `${this.#name}: ${error.message}`, { cause: error });
    }
    if (!ProtocolError.is(error) || error.message.startsWith(this.#name)) return error;
    return changeError(error, { message: `${this.#name}: ${error.message}`, cause: error });
  }

  /** One that does not stream may answer only when it has finished, also if it is asked to answer at once. */
  #answerTime({ can, card }: AgentCaller, { kind }: Operation): number | undefined {
    const isSend = kind === "stream" || kind === "send";
    const isStreamed = can.streaming && card.capabilities.streaming !== false;
    return isSend && !isStreamed ? (this.#options.answerMs ?? DEFAULT_ANSWER_MS) : undefined;
  }
}

/** Another attempt may succeed, so nothing is wrong with the card. */
function isTemporary(error: unknown): boolean {
  return isConnectionFailure(error) && !(ConnectionError.is(error) && error.permanent);
}
