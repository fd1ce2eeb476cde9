/** Devices on which users can be notified: those they have sent messages from. */

import type { PhoneAddress } from "../../../dialects/xiaoyi/render/notification.ts";
import type { Log } from "../../../model/ports.ts";
import type { FileBackedMap } from "../file-backed-map.ts";

type StoredDevice = { readonly pushId: string; readonly loginSessionId: string | null };

/** Maximum devices per user, the newest ones; a user with more does not carry all of them. */
const MAX_DEVICES = 8;

export class DeviceRegistry {
  readonly #devices: FileBackedMap<readonly StoredDevice[]>;

  constructor(devices: FileBackedMap<readonly StoredDevice[]>) {
    this.#devices = devices;
  }

  /** `user` identifies the user as well as possible. */
  async add(user: string, { loginSessionId: login, pushId }: DeviceAddress): Promise<void> {
    const loginSessionId = login ?? null;
    await this.#devices.update(user, (before = []) => {
      const newest = before.at(-1);
      if (newest?.pushId === pushId && newest.loginSessionId === loginSessionId) return before;
      const others = before.filter((device) => device.pushId !== pushId);
      return [...others, { pushId, loginSessionId }].slice(-MAX_DEVICES);
    });
  }

  async devicesOf(user: string): Promise<readonly PhoneAddress[]> {
    const devices = (await this.#devices.get(user)) ?? [];
    return devices.map(({ loginSessionId, pushId }) =>
      loginSessionId === null ? { pushId } : { pushId, loginSessionId },
    );
  }
}

interface DeviceAddress {
  readonly pushId: string;
  readonly loginSessionId?: string | undefined;
}

/** When devices were last notified: a device may be used by several entries, and outlives a process. */

/** The platform accepts notifications to the same device that follow sooner, but does not show them. */
export const DEVICE_SPACING_MS = 15_000;

export class DeviceSpacing {
  readonly #stored: FileBackedMap<number>;
  readonly #log: Log;
  /** Recent notifications only. */
  readonly #notifiedAt = new Map<string, number>();

  constructor(stored: FileBackedMap<number>, log: Log) {
    this.#stored = stored;
    this.#log = log;
  }

  /** Loads what an earlier process stored. */
  async load(): Promise<void> {
    for (const [pushId, at] of await this.#stored.entries()) {
      if (!this.#notifiedAt.has(pushId)) this.#notifiedAt.set(pushId, at);
    }
  }

  /** The earliest time of the next notification to a device. */
  readyAt(pushId: string): number {
    return (this.#notifiedAt.get(pushId) ?? Number.NEGATIVE_INFINITY) + DEVICE_SPACING_MS;
  }

  /** Resolves when earlier changes were written. */
  flush(): Promise<void> {
    return this.#stored.flush();
  }

  note(pushId: string, now: number): void {
    for (const [known, at] of this.#notifiedAt) if (now - at >= DEVICE_SPACING_MS) this.#notifiedAt.delete(known);
    this.#notifiedAt.set(pushId, now);
    this.#stored.set(pushId, now).catch((error: unknown) => {
      this.#log.warn({ err: error }, "The time of the last notification to a phone could not be stored.");
    });
  }
}
