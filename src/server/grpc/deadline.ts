import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";

const TIMEOUT = /^(\d{1,8})([HMSmun])$/;

const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/** Node's timers go no further, and fire at once if they are asked to. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Milliseconds of a `grpc-timeout`; undefined if it is too far off to wait for. Throws for what is no time. */
export function timeoutOf(header: string): number | undefined {
  const [, digits, unit = ""] = TIMEOUT.exec(header) ?? [];
  const unitMs = UNIT_MS[unit];
  if (digits === undefined || unitMs === undefined) {
    throw new RpcStatusError({ code: RPC_CODES.INTERNAL, message: "grpc-timeout is not a time." });
  }
  const ms = Math.ceil(Number(digits) * unitMs);
  return ms > LONGEST_TIMER_MS ? undefined : ms;
}
