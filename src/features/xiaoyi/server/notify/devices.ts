/** Devices on which users can be notified: those they have sent messages from. */

import type { Records } from "../../../../core/dialects/carrier.ts";
import { isObject, type JsonValue } from "../../../../core/model/json.ts";
import type { Log } from "../../../../core/model/ports.ts";
import type { PhoneAddress } from "../../codec/render/notification.ts";
import { allRecords, parseRecord, SPACES } from "../record-map.ts";

type StoredDevice = { readonly pushId: string; readonly loginSessionId: string | null };

/** Maximum devices per user, the newest ones; a user with more does not carry all of them. */
const MAX_DEVICES = 8;
const MAX_USERS = 5_000;

/** `user` identifies the user as well as possible. */
export function addDevice(records: Records, user: string, { loginSessionId: login, pushId }: DeviceAddress) {
  const loginSessionId = login ?? null;
  return records.update({ space: SPACES.devices, key: user, keep: MAX_USERS }, (before) => {
    const devices = toDevices(before);
    const newest = devices.at(-1);
    if (newest?.pushId === pushId && newest.loginSessionId === loginSessionId) return undefined;
    const others = devices.filter((device) => device.pushId !== pushId);
    return JSON.stringify([...others, { pushId, loginSessionId }].slice(-MAX_DEVICES));
  });
}

export async function devicesOf(records: Records, user: string): Promise<readonly PhoneAddress[]> {
  return toDevices(await records.record(SPACES.devices, user)).map(({ loginSessionId, pushId }) =>
    typeof loginSessionId === "string" ? { pushId, loginSessionId } : { pushId },
  );
}

function toDevices(stored: string | undefined): readonly StoredDevice[] {
  const devices = parseRecord(stored);
  return Array.isArray(devices) ? devices.filter(isDevice) : [];
}

function isDevice(value: JsonValue): value is StoredDevice {
  return isObject(value) && typeof value.pushId === "string";
}

interface DeviceAddress {
  readonly pushId: string;
  readonly loginSessionId?: string | undefined;
}

/** The platform accepts notifications to the same device that follow sooner, but does not show them. */
export const DEVICE_SPACING_MS = 15_000;

export class DeviceSpacing {
  readonly #records: () => Records;
  readonly #log: Log;
  /** Recent notifications only. */
  readonly #notifiedAt = new Map<string, number>();

  constructor(records: () => Records, log: Log) {
    this.#records = records;
    this.#log = log;
  }

  /** Loads what an earlier process stored. */
  async load(): Promise<void> {
    for (const { key, value } of await allRecords(this.#records(), SPACES.notified)) {
      const at = parseRecord(value);
      if (typeof at === "number" && !this.#notifiedAt.has(key)) this.#notifiedAt.set(key, at);
    }
  }

  readyAt(pushId: string): number {
    return (this.#notifiedAt.get(pushId) ?? Number.NEGATIVE_INFINITY) + DEVICE_SPACING_MS;
  }

  note(pushId: string, now: number): void {
    for (const [known, at] of this.#notifiedAt) if (now - at >= DEVICE_SPACING_MS) this.#notifiedAt.delete(known);
    this.#notifiedAt.set(pushId, now);
    const record = { space: SPACES.notified, key: pushId, value: JSON.stringify(now), ttlMs: DEVICE_SPACING_MS };
    this.#records()
      .put(record)
      .catch((error: unknown) => {
        this.#log.warn({ err: error }, "The time of the last notification to a phone could not be stored.");
      });
  }
}
