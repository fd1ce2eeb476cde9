/** Where users can be told things when they do not look: the devices they have spoken from. */

import type { PhoneAddress } from "../../../dialects/xiaoyi/render/notification.ts";
import type { Log } from "../../../model/ports.ts";
import type { FileBackedMap } from "../file-backed-map.ts";

type StoredDevice = { readonly pushId: string; readonly loginSessionId: string | null };

/** The newest ones of a user; whoever has more of them does not carry all of them about. */
const MAX_DEVICES = 8;

export class DeviceRegistry {
  readonly #devices: FileBackedMap<readonly StoredDevice[]>;

  constructor(devices: FileBackedMap<readonly StoredDevice[]>) {
    this.#devices = devices;
  }

  /** `whose`: the devices of one user, as far as one can tell. */
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

/** When devices were last told something: a device may be known to several entries, and has a longer life than a process. */

/** The platform says yes to what comes sooner to one device, and shows none of it. */
export const DEVICE_SPACING_MS = 15_000;

export class DeviceSpacing {
  readonly #stored: FileBackedMap<number>;
  readonly #log: Log;
  /** Only of late. */
  readonly #notifiedAt = new Map<string, number>();

  constructor(kept: FileBackedMap<number>, log: Log) {
    this.#stored = kept;
    this.#log = log;
  }

  /** Takes up what an earlier process noted. */
  async load(): Promise<void> {
    for (const [pushId, at] of await this.#stored.entries()) {
      if (!this.#notifiedAt.has(pushId)) this.#notifiedAt.set(pushId, at);
    }
  }

  /** When a device may be told something again. */
  readyAt(pushId: string): number {
    return (this.#notifiedAt.get(pushId) ?? Number.NEGATIVE_INFINITY) + DEVICE_SPACING_MS;
  }

  /** What was noted before is kept then. */
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
