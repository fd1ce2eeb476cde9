import { randomFillSync } from "node:crypto";
import { v7 } from "uuid";
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

const POOLED_IDS = 512;
const pool = new Uint8Array(16 * POOLED_IDS);
let nextInPool = POOLED_IDS;

/** Sixteen random bytes. Asking the operating system for every id on its own costs more than all the rest of an id. */
function pooledRandom(): Uint8Array {
  if (nextInPool === POOLED_IDS) {
    randomFillSync(pool);
    nextInPool = 0;
  }
  const start = 16 * nextInPool++;
  return pool.subarray(start, start + 16);
}

const pooled = { rng: pooledRandom };
const uuid = () => v7(pooled);

/** Version 7: ids made one after the other sort that way, which keeps the store's indexes compact. */
export const uuidIds: Ids = {
  task: uuid,
  context: uuid,
  message: uuid,
  artifact: uuid,
  incarnation: uuid,
};
