/** What every carrier offers: one try of an operation, one opening of a stream. Retries and other interfaces are `caller.ts`. */
import type { CallTarget, SigningKeys } from "../dialects/contract.ts";
import { ProtocolError } from "../model/errors.ts";
import type { Loss } from "../model/loss.ts";
import type { Operation, OutcomeOf } from "../model/operation.ts";
import type { ConnectionError } from "./errors.ts";
import type { FrameReader } from "./frame-reader.ts";
import type { ChosenInterface } from "./options.ts";
import type { Tracer } from "./trace.ts";

/** The circumstances of one call. */
export interface CallSettings {
  readonly signal: AbortSignal;
  readonly timeoutMs: number | undefined;
  readonly idempotencyKey: string | undefined;
  readonly extensions: readonly string[];
}

/**
 * How far a failed try got. `unsaid`: this dialect has no words for it, or not without a loss that is refused;
 * `untaken`: the failure shows that the agent took nothing, so that it can be asked by another way;
 * `unknown`: the agent may have taken it.
 */
export type Reach = "unsaid" | "untaken" | "unknown";

export interface Failure {
  readonly ok: false;
  readonly error: ProtocolError | ConnectionError;
  /** Asking again may help. */
  readonly transient: boolean;
  readonly reach: Reach;
}

export type Attempt<T> = { readonly ok: true; readonly value: T } | Failure;

export type StreamOperation = Extract<Operation, { kind: "stream" | "subscribe" }>;
export type WholeOperation = Exclude<Operation, StreamOperation>;

/** Neither rejects: what goes wrong is a failure. */
export interface Transport {
  attempt<O extends WholeOperation>(operation: O, settings: CallSettings): Promise<Attempt<OutcomeOf<O>>>;
  open(operation: StreamOperation, settings: CallSettings): Promise<Attempt<FrameReader>>;
}

export interface TransportSetup {
  readonly headers: Readonly<Record<string, string>>;
  readonly keys?: SigningKeys | undefined;
  /** Code of a user's login, in dialects in which users log in. */
  readonly authCode?: string | undefined;
  readonly extensions: readonly string[];
  readonly timeoutMs: number;
  readonly streamSilenceMs: number;
  readonly tracer: Tracer | undefined;
  /** Tells what a codec lost; throws LOSS_REFUSED where nothing may be lost. */
  readonly report: (losses: readonly Loss[]) => void;
  /** Tells a person that something was done another way. */
  readonly tellFallback: (message: string) => void;
}

export function callTarget(
  operation: Operation,
  settings: CallSettings,
  chosen: ChosenInterface,
  setup: Pick<TransportSetup, "extensions" | "headers" | "keys">,
): CallTarget {
  const key = operation.kind === "send" || operation.kind === "stream" ? settings.idempotencyKey : undefined;
  return {
    ...peerTarget(chosen, setup),
    extensions: [...new Set([...setup.extensions, ...settings.extensions])],
    ...(key === undefined ? {} : { idempotencyKey: key }),
  };
}

/** For requests that belong to no operation. */
export function peerTarget(
  { tenant, url }: ChosenInterface,
  { headers, keys }: Pick<TransportSetup, "headers" | "keys">,
): CallTarget {
  const signing = keys === undefined ? {} : { keys: { ...keys, now: Date.now() } };
  return { url, tenant, headers, extensions: [], ...signing };
}

/** An encoder's refusal; anything but a ProtocolError is a defect and thrown on. */
export function unsaid(error: unknown): Failure {
  if (!ProtocolError.is(error)) throw error;
  return { ok: false, error, transient: false, reach: "unsaid" };
}

/** What a peer says when it knows the caller's dialect or this operation not at all, and so cannot have done anything. */
export function saysUnknown(error: unknown): boolean {
  return ProtocolError.is(error) && (error.code === "METHOD_NOT_FOUND" || error.code === "VERSION_NOT_SUPPORTED");
}
