import { createGuardedFetch } from "../../auth/guarded-fetch.ts";
import type { SigningKey, SigningKeyOptions } from "../../auth/signing-key.ts";
import { createTargetPolicy } from "../../auth/target-policy.ts";
import type { Dialect } from "../../dialects/contract.ts";
import type { EngineLimits, EngineOptions, EngineTimes } from "../../engine/options.ts";
import type { Loss } from "../../model/loss.ts";
import type { Clock, Ids } from "../../model/ports.ts";
import { createPushSender, type PushFetch } from "./sender.ts";

/** How push notifications are delivered. */
export interface PushOptions {
  /**
   * Let webhooks be in private networks and on this machine. Anyone who may call can then make the server call there;
   * unless given, it is so where only this machine may call.
   */
  readonly allowPrivateTargets?: boolean;
  /** Tries of one notification before its config is given up; 12 unless given. */
  readonly attempts?: number;
  /** Longest time of one try; 10 s unless given. */
  readonly timeoutMs?: number;
  /** A notification that failed is tried again at most this long after; then twice as long each time. 5 s unless given. */
  readonly retryMs?: number;
  /** Signs every notification with a secret that the receivers know too. */
  readonly hmac?: { readonly secret: string };
  /** Signs every notification with a key whose public half is at `/.well-known/jwks.json`. */
  readonly jwt?: Omit<SigningKeyOptions, "jku"> & {
    /** The address of the server unless given. */
    readonly issuer?: string;
  };
  /** Carries them, instead of the one that keeps to public addresses. */
  readonly fetch?: PushFetch;
}

export interface PushSurroundings {
  readonly dialects: readonly Dialect[];
  readonly clock: Clock;
  readonly ids: Ids;
  readonly report: (dialect: string, losses: readonly Loss[]) => void;
  readonly where: { baseUrl(): string };
  /** Only this machine can call, and so webhooks on it and around it harm nobody. */
  readonly local: boolean;
  /** That of `jwt`. */
  readonly key: SigningKey | undefined;
}

export interface OpenedPush {
  readonly engine: Pick<EngineOptions, "push" | "pushSender">;
  readonly limits: Partial<EngineLimits>;
  readonly times: Partial<EngineTimes>;
}

/** Nobody reads what a webhook answers. */
const LONGEST_ANSWER = 64 * 1024;
const TRY_MS = 10_000;

export function openPush(given: boolean | PushOptions, around: PushSurroundings): OpenedPush {
  if (given === false) return { engine: { push: false }, limits: {}, times: {} };
  const options = given === true ? {} : given;
  const { attempts, timeoutMs, retryMs, hmac, jwt } = options;
  const { key } = around;
  const policy = { allowPrivate: options.allowPrivateTargets ?? around.local };
  const { check } = createTargetPolicy(policy);
  const guarded = createGuardedFetch({
    ...policy,
    maxRedirects: 0,
    maxBytes: LONGEST_ANSWER,
    timeoutMs: timeoutMs ?? TRY_MS,
  });
  const pushSender = createPushSender({
    encodings: new Map(around.dialects.flatMap(({ name, serving: { push } }) => (push ? [[name, push]] : []))),
    fetch: options.fetch ?? guarded,
    check,
    clock: around.clock,
    ids: around.ids,
    report: around.report,
    ...(hmac === undefined ? undefined : { secret: hmac.secret }),
    ...(key === undefined ? undefined : { signing: { key, issuer: () => jwt?.issuer ?? around.where.baseUrl() } }),
  });
  return {
    engine: { push: true, pushSender },
    limits: attempts === undefined ? {} : { pushAttempts: attempts },
    times: {
      ...(timeoutMs === undefined ? undefined : { pushTimeoutMs: timeoutMs }),
      ...(retryMs === undefined ? undefined : { pushRetryMs: retryMs }),
    },
  };
}
