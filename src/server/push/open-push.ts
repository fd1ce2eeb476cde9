import type { GuardedFetchOptions } from "../../auth/guarded-fetch.ts";
import { type PushAlgorithm, type PushKey, publicPushKey, readPushKey } from "../../auth/push-token.ts";
import { createTargetPolicy } from "../../auth/target-policy.ts";
import type { Dialect } from "../../dialects/contract.ts";
import type { EngineLimits, EngineOptions, EngineTimes } from "../../engine/options.ts";
import type { Loss } from "../../model/loss.ts";
import type { Clock, Ids } from "../../model/ports.ts";
import { type FullReply, jsonReply } from "../../wire/exchange.ts";
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
  readonly jwt?: PushKeyOptions;
  /** Carries them, instead of the one that keeps to public addresses. */
  readonly fetch?: PushFetch;
}

export interface PushKeyOptions {
  /** A private key in PEM or JWK form: P-256, Ed25519 or RSA. */
  readonly key: string;
  readonly kid: string;
  readonly alg?: PushAlgorithm;
  /** The address of the server unless given. */
  readonly issuer?: string;
}

export interface PushSurroundings {
  readonly dialects: readonly Dialect[];
  readonly clock: Clock;
  readonly ids: Ids;
  readonly report: (dialect: string, losses: readonly Loss[]) => void;
  readonly where: { baseUrl(): string };
  /** Only this machine can call, and so webhooks on it and around it harm nobody. */
  readonly local: boolean;
}

export interface OpenedPush {
  readonly engine: Pick<EngineOptions, "push" | "pushSender">;
  readonly limits: Partial<EngineLimits>;
  readonly times: Partial<EngineTimes>;
  /** Paths that it answers. */
  readonly operations: ReadonlyMap<string, () => Promise<FullReply>>;
}

/** Nobody reads what a webhook answers. */
const LONGEST_ANSWER = 64 * 1024;
const TRY_MS = 10_000;
const JWKS_PATH = "/.well-known/jwks.json";
const KEYS_KEPT_SECONDS = 300;

export function openPush(given: boolean | PushOptions, around: PushSurroundings): OpenedPush {
  if (given === false) return { engine: { push: false }, limits: {}, times: {}, operations: new Map() };
  const options = given === true ? {} : given;
  const { attempts, timeoutMs, retryMs, hmac, jwt } = options;
  const key = jwt === undefined ? undefined : readKey(jwt);
  const policy = { allowPrivate: options.allowPrivateTargets ?? around.local };
  const { check } = createTargetPolicy(policy);
  const guarded = guardedFetch({
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
    operations: new Map(key === undefined ? [] : [[JWKS_PATH, () => publishedKeys(key)]]),
  };
}

/** Loaded with the first notification: most servers never send one, and all of them want to be ready soon. */
function guardedFetch(options: GuardedFetchOptions): PushFetch {
  let loading: Promise<PushFetch> | undefined;
  return async (url, init) => {
    loading ??= import("../../auth/guarded-fetch.ts").then(({ createGuardedFetch }) => createGuardedFetch(options));
    return (await loading)(url, init);
  };
}

function readKey({ key, kid, alg }: PushKeyOptions): PushKey {
  try {
    return readPushKey(key, kid, alg);
  } catch (error) {
    throw new TypeError(`The key of push.jwt ${error instanceof Error ? error.message : String(error)}.`);
  }
}

async function publishedKeys(key: PushKey): Promise<FullReply> {
  const reply = jsonReply(200, JSON.stringify({ keys: [await publicPushKey(key)] }));
  return { ...reply, headers: { ...reply.headers, "cache-control": `max-age=${KEYS_KEPT_SECONDS}` } };
}
