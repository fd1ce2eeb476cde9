import { randomFillSync } from "node:crypto";
import type { Clock, Ids } from "../model/ports.ts";

/** The real clock. Its timers never keep the process alive. */
export const systemClock: Clock = {
  now: Date.now,
  after(milliseconds, run) {
    const timer = setTimeout(run, milliseconds);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

const POOL_BYTES = 8 * 1024;
const pool = Buffer.alloc(POOL_BYTES);
let poolPosition = POOL_BYTES;
const HEX = Array.from({ length: 65_536 }, (_, value) => value.toString(16).padStart(4, "0"));

/** Sixteen random bits. Asking the operating system for every id on its own costs more than all the rest of an id. */
function random16(): number {
  if (poolPosition === POOL_BYTES) {
    randomFillSync(pool);
    poolPosition = 0;
  }
  const value = pool.readUInt16LE(poolPosition);
  poolPosition += 2;
  return value;
}

let prefixTime = Number.NaN;
let prefix = "";

/**
 * A UUID of version 7 (RFC 9562 §5.7): milliseconds, then 74 random bits. Ids made one after the other sort that way,
 * which keeps the store's indexes compact. Made here because three of them go into every task, and the general
 * libraries spend on each what the whole engine spends on an event.
 */
export function uuidV7(now: number = Date.now()): string {
  if (now !== prefixTime) {
    prefixTime = now;
    const hex = now.toString(16).padStart(12, "0");
    prefix = `${hex.slice(0, 8)}-${hex.slice(8)}-`;
  }
  const version = HEX[0x7000 | (random16() & 0x0fff)];
  const variant = HEX[0x8000 | (random16() & 0x3fff)];
  return `${prefix}${version}-${variant}-${HEX[random16()]}${HEX[random16()]}${HEX[random16()]}`;
}

const uuid = () => uuidV7();

export const uuidIds: Ids = { task: uuid, context: uuid, message: uuid, artifact: uuid, incarnation: uuid };
