import { randomFillSync } from "node:crypto";
import type { Clock, IdGenerator } from "../model/ports.ts";

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

/** Random bits from a pool: a system call for every id would cost more than the rest of it. */
function random(bytes: 2 | 4): number {
  if (poolPosition > POOL_BYTES - bytes) {
    randomFillSync(pool);
    poolPosition = 0;
  }
  const value = pool.readUIntLE(poolPosition, bytes);
  poolPosition += bytes;
  return value;
}

const HEX = Buffer.from("0123456789abcdef");
const text = Buffer.from("00000000-0000-7000-8000-000000000000");
let textTime = Number.NaN;
let counter = 0;

function writeHex(value: number, start: number, end: number): void {
  let rest = value;
  for (let at = end - 1; at >= start; at--) {
    text[at] = HEX[rest & 15] as number;
    rest >>>= 4;
  }
}

/**
 * A version 7 UUID (RFC 9562 §5.7, with the counter of §6.2): milliseconds, a counter that starts anywhere in the lower
 * half, 62 random bits. Successive ids sort in order, which keeps the store's indexes compact. Written into one buffer
 * because every task needs two: general libraries spend on each what the engine spends on an event.
 */
export function uuidV7(now: number = Date.now()): string {
  if (now !== textTime) {
    textTime = now;
    writeHex(Math.floor(now / 0x1_0000), 0, 8);
    writeHex(now % 0x1_0000, 9, 13);
    counter = random(2) & 0x7ff;
  }
  writeHex(counter++, 15, 18);
  writeHex(0x8000 | (random(2) & 0x3fff), 19, 23);
  writeHex(random(4), 24, 32);
  writeHex(random(2), 32, 36);
  return text.toString("latin1");
}

const uuid = () => uuidV7();

export const uuidIds: IdGenerator = {
  task: uuid,
  context: uuid,
  message: uuid,
  artifact: uuid,
  pushConfig: uuid,
  node: uuid,
};

/** Not changed when the time is set. */
export const monotonic = (): number => performance.now();

export const systemTools = { clock: systemClock, ids: uuidIds, random: Math.random };
