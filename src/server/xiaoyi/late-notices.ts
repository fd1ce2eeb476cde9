/** Tasks whose users have left: looked at now and then until they end or ask something, and then told of. */

import type { AgentService } from "../../dialects/contract.ts";
import type { Notes } from "../../dialects/xiaoyi/notes.ts";
import type { Notices } from "../../dialects/xiaoyi/notices.ts";
import { answerTextOf, type Notice, noticeOf } from "../../dialects/xiaoyi/notification.ts";
import type { Language } from "../../dialects/xiaoyi/phone-texts.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { CallContext } from "../../model/operation.ts";
import type { Clock, Log, Meter } from "../../model/ports.ts";
import { isTerminal, type Task } from "../../model/task.ts";
import type { KeptMap } from "./kept-map.ts";
import type { PhoneBook } from "./phone-book.ts";
import type { PhonePush } from "./phone-push.ts";

export interface AwaitedAnswer {
  readonly [key: string]: string | number;
  readonly sessionId: string;
  readonly since: number;
}

export interface LateNoticesOptions {
  /** One entry of the configuration: nobody else's devices and tasks are touched. */
  readonly scope: string;
  /** The dialect of the entry, and to whom its tasks belong. */
  readonly dialect: string;
  readonly owner: string;
  /** Of what the server itself says. */
  readonly language: Language;
  /** Undefined before the server has started. */
  readonly service: () => Pick<AgentService, "dispatch" | "originOf"> | undefined;
  /** All who speak to the agent are one user, who is told on every device; else only on those of the conversation. */
  readonly everyDevice: boolean;
  readonly push: Pick<PhonePush, "push" | "stop">;
  readonly book: PhoneBook;
  readonly awaited: KeptMap<AwaitedAnswer>;
  /** Tasks with the conversations that read their streams: with the process that served them, all have left. */
  readonly unanswered?: Notes | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
}

/** A task is looked at again after a tenth of the time that it was waited for: the longer it took, the less it matters. */
const SHARE = 10;
const SOONEST_LOOK_MS = 1_000;
const LATEST_LOOK_MS = 60_000;
/** After this nobody wants to know any more. */
const LONGEST_WAIT_MS = 24 * 60 * 60 * 1_000;
const MOST_AWAITED = 1_000;
/** Nobody's ids are longer, and what is kept has to end somewhere. */
const LONGEST_ID = 512;

export class LateNotices implements Notices {
  readonly #options: LateNoticesOptions;
  readonly #call: CallContext;
  /** How to stop looking at a task that is awaited. */
  readonly #watched = new Map<string, () => void>();
  #stopped = false;

  constructor(options: LateNoticesOptions) {
    this.#options = options;
    const caller = { owner: options.owner, authenticated: true };
    this.#call = { caller, tenant: "", extensions: [], dialect: options.dialect };
  }

  async heard({ loginSessionId, pushId, sessionId }: Parameters<Notices["heard"]>[0]): Promise<void> {
    const ids = [pushId, sessionId, loginSessionId ?? ""];
    if (pushId === undefined || ids.some((id) => id !== undefined && id.length > LONGEST_ID)) return;
    await this.#keep(this.#options.book.note(this.#whose(sessionId), { pushId, loginSessionId }));
  }

  left(taskId: string, sessionId: string): void {
    if (this.#watched.has(taskId)) return;
    const answer = { sessionId, since: this.#options.clock.now() };
    void this.#keep(this.#options.awaited.set(this.#key(taskId), answer));
    if (!this.#stopped) this.#lookLater(taskId, answer);
  }

  seen(taskId: string): void {
    if (this.#watched.has(taskId)) this.#forget(taskId);
  }

  async awaits(taskId: string): Promise<boolean> {
    const awaited = this.#options.awaited.get(this.#key(taskId));
    return (await awaited.catch(() => undefined)) !== undefined;
  }

  async recall(pushDataId: string): Promise<string | undefined> {
    const { dialect, language, log, service } = this.#options;
    try {
      const task = await this.#find(pushDataId);
      if (task === undefined) return undefined;
      // The platform is answered what it was told of before, and nothing else its owner has.
      const origin = await service()?.originOf(task.id, this.#call.caller);
      return origin === dialect ? answerTextOf(task, language) : undefined;
    } catch (error) {
      log.warn({ err: error }, "What a notification of Xiaoyi stood for could not be read.");
      return undefined;
    }
  }

  /** Takes up what an earlier process has left. */
  async start(): Promise<void> {
    for (const [key, answer] of await this.#options.awaited.entries()) {
      const [scope, taskId] = JSON.parse(key) as [string, string];
      if (scope === this.#options.scope && !this.#watched.has(taskId)) this.#lookLater(taskId, answer);
    }
    const { unanswered } = this.#options;
    for (const [taskId, sessionId] of (await unanswered?.all()) ?? []) {
      this.left(taskId, sessionId);
      void unanswered?.delete(taskId);
    }
  }

  /** What is not told by now is left to the next process. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const cancel of this.#watched.values()) cancel();
    this.#watched.clear();
    this.#options.push.stop();
    await this.#options.awaited.settled();
  }

  #lookLater(taskId: string, answer: AwaitedAnswer): void {
    const { clock } = this.#options;
    const waited = clock.now() - answer.since;
    const delay = Math.min(Math.max(waited / SHARE, SOONEST_LOOK_MS), LATEST_LOOK_MS);
    this.#watched.set(
      taskId,
      clock.after(delay, () => void this.#look(taskId, answer)),
    );
    const [oldest] = this.#watched.keys();
    if (this.#watched.size > MOST_AWAITED && oldest !== undefined) this.#drop(oldest);
  }

  async #look(taskId: string, answer: AwaitedAnswer): Promise<void> {
    const task = await this.#find(taskId).catch(() => "unknown" as const);
    if (!this.#watched.has(taskId)) return;
    const notice = task === "unknown" || task === undefined ? undefined : noticeOf(task, this.#options.language);
    const goesOn = task === "unknown" || (task !== undefined && !isTerminal(task.status.state));
    // Whoever answers a question is there again, so that what follows is told to nobody who is not.
    if (notice !== undefined || !goesOn) await this.#tell(notice, taskId, answer);
    else if (this.#options.clock.now() - answer.since < LONGEST_WAIT_MS) this.#lookLater(taskId, answer);
    else this.#drop(taskId);
  }

  async #tell(notice: Notice | undefined, taskId: string, { sessionId }: AwaitedAnswer): Promise<void> {
    this.#watched.delete(taskId);
    const addresses = notice === undefined ? [] : await this.#addresses(sessionId);
    if (notice !== undefined && addresses.length > 0) {
      const outcomes = await this.#options.push.push(notice, addresses);
      if (outcomes.includes("stopped")) return;
    } else {
      this.#options.log.debug({ task: taskId }, "Xiaoyi's user cannot or need not be told of a task.");
    }
    // Whoever answered a question meanwhile, and left again, waits for what comes of it.
    if (!this.#watched.has(taskId)) this.#forget(taskId);
  }

  async #addresses(sessionId: string) {
    try {
      return await this.#options.book.of(this.#whose(sessionId));
    } catch (error) {
      this.#options.log.warn({ err: error }, "The devices of Xiaoyi's users could not be read.");
      return [];
    }
  }

  /** Undefined where it does not exist; rejects where that cannot be said. */
  async #find(id: string): Promise<Task | undefined> {
    const service = this.#options.service();
    if (service === undefined) throw new ProtocolError("UNAVAILABLE", "The server has not started.");
    try {
      return await service.dispatch({ kind: "get", id, historyLength: 0 }, this.#call);
    } catch (error) {
      if (ProtocolError.is(error) && error.code === "TASK_NOT_FOUND") return undefined;
      throw error;
    }
  }

  #drop(taskId: string): void {
    this.#options.meter.count("phone_notices_dropped");
    this.#forget(taskId);
  }

  #forget(taskId: string): void {
    this.#watched.get(taskId)?.();
    this.#watched.delete(taskId);
    void this.#keep(this.#options.awaited.delete(this.#key(taskId)));
  }

  #keep(change: Promise<void>): Promise<void> {
    return change.catch((error: unknown) => {
      this.#options.log.warn({ err: error }, "What is known of Xiaoyi's users could not be kept.");
    });
  }

  #key(taskId: string): string {
    return JSON.stringify([this.#options.scope, taskId]);
  }

  #whose(sessionId: string): string {
    const { everyDevice, scope } = this.#options;
    return JSON.stringify(everyDevice ? [scope] : [scope, sessionId]);
  }
}
