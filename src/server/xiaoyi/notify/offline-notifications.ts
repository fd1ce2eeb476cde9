/** Tasks whose users have left: polled until they end or ask for input, and then announced by a notification. */

import type { AgentService } from "../../../dialects/contract.ts";
import type { Language } from "../../../dialects/xiaoyi/phone-texts.ts";
import type { OfflineNotifications, PersistentMap } from "../../../dialects/xiaoyi/ports.ts";
import {
  answerTextOf,
  type PhoneNotification,
  toPhoneNotification,
} from "../../../dialects/xiaoyi/render/notification.ts";
import { ProtocolError } from "../../../model/errors.ts";
import type { CallContext } from "../../../model/operation.ts";
import type { Clock, Log, Meter } from "../../../model/ports.ts";
import { isTerminal, type Task } from "../../../model/task.ts";
import type { FileBackedMap } from "../file-backed-map.ts";
import type { DeviceRegistry } from "./devices.ts";
import type { NotificationSender } from "./notification-sender.ts";

export interface PendingNotification {
  readonly [key: string]: string | number;
  readonly sessionId: string;
  readonly since: number;
}

export interface PhoneNotificationsOptions {
  /** Identifies one entry of the configuration: devices and tasks of other entries are not touched. */
  readonly scope: string;
  /** The dialect of the entry and the owner of its tasks. */
  readonly dialect: string;
  readonly owner: string;
  /** Language of the server's own texts. */
  readonly language: Language;
  /** Undefined before the server has started. */
  readonly service: () => Pick<AgentService, "dispatch" | "originOf"> | undefined;
  /**
   * All callers of the agent are one user, who is notified on every device; otherwise only on those of the
   * conversation.
   */
  readonly everyDevice: boolean;
  readonly push: Pick<NotificationSender, "push" | "stop">;
  readonly book: DeviceRegistry;
  readonly pending: FileBackedMap<PendingNotification>;
  /** The conversations that read a task's stream, by task: when the process that served them ends, all have left. */
  readonly unanswered?: PersistentMap | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
}

/**
 * A task is polled again after a tenth of the time since the user left: the longer it takes, the less the delay
 * matters.
 */
const POLL_FRACTION = 10;
const MIN_POLL_MS = 1_000;
const MAX_POLL_MS = 60_000;
/** After this time, a notification is no longer useful. */
const MAX_WAIT_MS = 24 * 60 * 60 * 1_000;
const MAX_PENDING = 1_000;
/** No known ids are longer; this bounds the size of the file. */
const MAX_ID_LENGTH = 512;

export class PhoneNotifications implements OfflineNotifications {
  readonly #options: PhoneNotificationsOptions;
  readonly #call: CallContext;
  /** Cancels the polling of a task. */
  readonly #watched = new Map<string, () => void>();
  #stopped = false;

  constructor(options: PhoneNotificationsOptions) {
    this.#options = options;
    const caller = { owner: options.owner, authenticated: true };
    this.#call = { caller, tenant: "", extensions: [], dialect: options.dialect };
  }

  async registerDevice({
    loginSessionId,
    pushId,
    sessionId,
  }: Parameters<OfflineNotifications["registerDevice"]>[0]): Promise<void> {
    const ids = [pushId, sessionId, loginSessionId ?? ""];
    if (pushId === undefined || ids.some((id) => id !== undefined && id.length > MAX_ID_LENGTH)) return;
    await this.#save(this.#options.book.add(this.#userKey(sessionId), { pushId, loginSessionId }));
  }

  notifyWhenDone(taskId: string, sessionId: string): void {
    if (this.#watched.has(taskId)) return;
    const answer = { sessionId, since: this.#options.clock.now() };
    void this.#save(this.#options.pending.set(this.#key(taskId), answer));
    if (!this.#stopped) this.#pollLater(taskId, answer);
  }

  cancel(taskId: string): void {
    if (this.#watched.has(taskId)) this.#forget(taskId);
  }

  async isPending(taskId: string): Promise<boolean> {
    const pending = this.#options.pending.get(this.#key(taskId));
    return (await pending.catch(() => undefined)) !== undefined;
  }

  async readAnswer(pushDataId: string): Promise<string | undefined> {
    const { dialect, language, log, service } = this.#options;
    try {
      const task = await this.#find(pushDataId);
      if (task === undefined) return undefined;
      // The platform can read the answers of its own tasks only, not others of the same owner.
      const origin = await service()?.originOf(task.id, this.#call.caller);
      return origin === dialect ? answerTextOf(task, language) : undefined;
    } catch (error) {
      log.warn({ err: error }, "What a notification of Xiaoyi stood for could not be read.");
      return undefined;
    }
  }

  /** Resumes what an earlier process left. */
  async start(): Promise<void> {
    for (const [key, answer] of await this.#options.pending.entries()) {
      const [scope, taskId] = JSON.parse(key) as [string, string];
      if (scope === this.#options.scope && !this.#watched.has(taskId)) this.#pollLater(taskId, answer);
    }
    const { unanswered } = this.#options;
    for (const [taskId, sessionId] of (await unanswered?.entries()) ?? []) {
      this.notifyWhenDone(taskId, sessionId);
      void unanswered?.delete(taskId);
    }
  }

  /** Notifications that are not sent by now are left to the next process. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const cancel of this.#watched.values()) cancel();
    this.#watched.clear();
    this.#options.push.stop();
    await this.#options.pending.flush();
  }

  #pollLater(taskId: string, answer: PendingNotification): void {
    const { clock } = this.#options;
    const waited = clock.now() - answer.since;
    const delay = Math.min(Math.max(waited / POLL_FRACTION, MIN_POLL_MS), MAX_POLL_MS);
    this.#watched.set(
      taskId,
      clock.after(delay, () => void this.#poll(taskId, answer)),
    );
    const [oldest] = this.#watched.keys();
    if (this.#watched.size > MAX_PENDING && oldest !== undefined) this.#drop(oldest);
  }

  async #poll(taskId: string, answer: PendingNotification): Promise<void> {
    const task = await this.#find(taskId).catch(() => "unknown" as const);
    if (!this.#watched.has(taskId)) return;
    const notification =
      task === "unknown" || task === undefined ? undefined : toPhoneNotification(task, this.#options.language);
    const isOngoing = task === "unknown" || (task !== undefined && !isTerminal(task.status.state));
    // A user who answers a question is back, and needs no notification unless they leave again.
    if (notification !== undefined || !isOngoing) await this.#notify(notification, taskId, answer);
    else if (this.#options.clock.now() - answer.since < MAX_WAIT_MS) this.#pollLater(taskId, answer);
    else this.#drop(taskId);
  }

  async #notify(
    notification: PhoneNotification | undefined,
    taskId: string,
    { sessionId }: PendingNotification,
  ): Promise<void> {
    this.#watched.delete(taskId);
    const addresses = notification === undefined ? [] : await this.#addresses(sessionId);
    if (notification !== undefined && addresses.length > 0) {
      const outcomes = await this.#options.push.push(notification, addresses);
      if (outcomes.includes("stopped")) return;
    } else {
      this.#options.log.debug(
        { task: taskId },
        "No notification of a task to its Xiaoyi user: not possible, or not needed.",
      );
    }
    // A user who answered a question meanwhile and left again waits for the result.
    if (!this.#watched.has(taskId)) this.#forget(taskId);
  }

  async #addresses(sessionId: string) {
    try {
      return await this.#options.book.devicesOf(this.#userKey(sessionId));
    } catch (error) {
      this.#options.log.warn({ err: error }, "The devices of Xiaoyi's users could not be read.");
      return [];
    }
  }

  /** Undefined if the task does not exist; rejects if that cannot be determined. */
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
    void this.#save(this.#options.pending.delete(this.#key(taskId)));
  }

  #save(change: Promise<void>): Promise<void> {
    return change.catch((error: unknown) => {
      this.#options.log.warn({ err: error }, "What is known of Xiaoyi's users could not be kept.");
    });
  }

  #key(taskId: string): string {
    return JSON.stringify([this.#options.scope, taskId]);
  }

  #userKey(sessionId: string): string {
    const { everyDevice, scope } = this.#options;
    return JSON.stringify(everyDevice ? [scope] : [scope, sessionId]);
  }
}
