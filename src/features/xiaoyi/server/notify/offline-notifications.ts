/** Notifies users who left before their task ended or asked for input. */

import type { Records } from "../../../../core/dialects/carrier.ts";
import type { AgentService } from "../../../../core/dialects/contract.ts";
import { ProtocolError } from "../../../../core/model/errors.ts";
import type { Delivery, ReplyTo } from "../../../../core/model/operation.ts";
import type { Clock, Log, Meter } from "../../../../core/model/ports.ts";
import { STATE_CLASS } from "../../../../core/model/task.ts";
import type { Language } from "../../codec/phone-texts.ts";
import { answerTextOf, toPhoneNotification } from "../../codec/render/notification.ts";
import { BoundedMap } from "../../runtime/bounded-map.ts";
import { ANSWER_DELIVERY, type Attendance, type OfflineNotifications, whenAborted } from "../../runtime/ports.ts";
import { MAX_ID_LENGTH } from "../record-map.ts";
import { addDevice, devicesOf } from "./devices.ts";
import type { NotificationSender } from "./notification-sender.ts";

/** What the server provides once it has started. */
export interface NotificationHost {
  readonly records: Records;
  readonly agents: ReadonlyMap<string, Pick<AgentService, "dispatch" | "originOf">>;
}

export interface PhoneNotificationsOptions {
  /** The entry of the configuration: devices and tasks of other entries are not touched. */
  readonly entry: NotificationEntry;
  readonly language: Language;
  /**
   * All callers of the agent are one user, who is notified on every device; otherwise only on those of the
   * conversation.
   */
  readonly everyDevice: boolean;
  readonly push: Pick<NotificationSender, "push" | "stop">;
  readonly host: () => NotificationHost;
  readonly uniqueId: () => string;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
}

export interface NotificationEntry {
  readonly dialect: string;
  readonly agent: string;
  readonly owner: string;
  readonly apiId: string;
}

/** Also the key of the entry's devices. */
export function entryKey({ agent, apiId, dialect, owner }: NotificationEntry): string {
  return JSON.stringify([dialect, agent, owner, apiId]);
}

function notificationRoute(entry: NotificationEntry): string {
  return `xiaoyi-notifications:${entryKey(entry)}`;
}

interface NotificationAddress {
  readonly sessionId: string;
  readonly since: number;
  /** Identifies the reader of the answer in the process that serves it. */
  readonly reader?: string;
}

export function notificationReply(entry: NotificationEntry, address: NotificationAddress): ReplyTo {
  const route = notificationRoute(entry);
  return { id: ANSWER_DELIVERY, route, address: JSON.stringify(address), wants: "outcome" };
}

/** Readers whose deliveries are not due yet. */
const MAX_READERS = 100_000;
/** After this time, a notification is no longer useful. */
const MAX_WAIT_MS = 24 * 60 * 60 * 1_000;

export class PhoneNotifications implements OfflineNotifications {
  readonly route: string;
  readonly #options: PhoneNotificationsOptions;
  /** Whether the reader of an answer has finished; absent if they have left, or read it in another process. */
  readonly #readers = new BoundedMap<string, Promise<boolean>>(MAX_READERS);

  constructor(options: PhoneNotificationsOptions) {
    this.#options = options;
    this.route = notificationRoute(options.entry);
  }

  async registerDevice(message: Parameters<OfflineNotifications["registerDevice"]>[0]): Promise<void> {
    const { loginSessionId, pushId, sessionId } = message;
    const ids = [pushId, sessionId, loginSessionId ?? ""];
    if (pushId === undefined || ids.some((id) => id !== undefined && id.length > MAX_ID_LENGTH)) return;
    const device = { pushId, loginSessionId };
    await addDevice(this.#options.host().records, this.#userKey(sessionId), device).catch((error: unknown) => {
      this.#options.log.warn({ err: error }, "A device of a Xiaoyi user could not be stored.");
    });
  }

  replyTo(sessionId: string): ReplyTo {
    return notificationReply(this.#options.entry, { sessionId, since: this.#options.clock.now() });
  }

  attend(sessionId: string): Attendance {
    const { clock, entry, uniqueId } = this.#options;
    const reader = uniqueId();
    let end = (_hasFinished: boolean): void => {};
    const ended = new Promise<boolean>((resolve) => {
      end = resolve;
    });
    this.#readers.set(reader, ended);
    return {
      replyTo: notificationReply(entry, { sessionId, since: clock.now(), reader }),
      finished: () => end(true),
      left: () => {
        this.#readers.delete(reader);
        end(false);
      },
    };
  }

  async isReachable(sessionId: string): Promise<boolean> {
    const devices = devicesOf(this.#options.host().records, this.#userKey(sessionId));
    return (await devices.catch(() => [])).length > 0;
  }

  /** Called when the task has ended or asks for input. */
  async deliver(delivery: Delivery): Promise<void> {
    const { clock, language, log, meter, push } = this.#options;
    const { reader, sessionId, since } = JSON.parse(delivery.record.address) as NotificationAddress;
    const hasFinished = reader === undefined ? false : await this.#waitForReader(reader, delivery.signal);
    if (delivery.signal.aborted) return;
    if (hasFinished) return void (await delivery.done());
    const task = await delivery.task();
    // The question was answered while it was read: the delivery is due again when the task ends or asks once more.
    if (task !== undefined && STATE_CLASS[task.status.state] === "active") {
      return void (await delivery.release(delivery.record.cursor));
    }
    const isLate = clock.now() - since >= MAX_WAIT_MS;
    if (isLate) meter.count("phone_notices_dropped");
    const notification = task === undefined || isLate ? undefined : toPhoneNotification(task, language);
    const addresses =
      notification === undefined ? [] : await devicesOf(this.#options.host().records, this.#userKey(sessionId));
    if (notification === undefined || addresses.length === 0) {
      log.debug({ task: delivery.record.taskId }, "A Xiaoyi user was not notified: not possible, or not needed.");
    } else {
      const outcomes = await push.push(notification, addresses);
      if (outcomes.includes("stopped")) return;
    }
    await delivery.done();
  }

  async #waitForReader(reader: string, signal: AbortSignal): Promise<boolean> {
    const hasFinished = await Promise.race([this.#readers.get(reader), whenAborted(signal)]);
    if (!signal.aborted) this.#readers.delete(reader);
    return hasFinished === true;
  }

  async readAnswer(pushDataId: string): Promise<string | undefined> {
    const { entry, host, language, log } = this.#options;
    const caller = { owner: entry.owner, authenticated: true };
    const call = { caller, tenant: "", extensions: [], dialect: entry.dialect };
    try {
      const service = host().agents.get(entry.agent);
      const task = await service?.dispatch({ kind: "get", id: pushDataId }, call);
      if (task === undefined) return undefined;
      // The platform can read the answers of its own tasks only, not others of the same owner.
      const origin = await service?.originOf(task.id, caller);
      return origin === entry.dialect ? answerTextOf(task, language) : undefined;
    } catch (error) {
      if (ProtocolError.is(error) && error.code === "TASK_NOT_FOUND") return undefined;
      log.warn({ err: error }, "The answer that a notification of Xiaoyi announced could not be read.");
      return undefined;
    }
  }

  /** Notifications that are not sent by now are left to the next process. */
  stop(): void {
    this.#options.push.stop();
  }

  #userKey(sessionId: string): string {
    const { entry, everyDevice } = this.#options;
    return JSON.stringify(everyDevice ? [entryKey(entry)] : [entryKey(entry), sessionId]);
  }
}
