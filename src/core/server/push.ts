import { createGuardedPost } from "../auth/guarded-fetch/guarded-fetch.ts";
import { createTargetPolicy } from "../auth/guarded-fetch/target-policy.ts";
import type { SigningKey, SigningKeyOptions } from "../auth/signatures/keys.ts";
import { createPushToken, PUSH_SIGNATURE_HEADER, PUSH_TOKEN_HEADER, signPush } from "../auth/signatures/sign-push.ts";
import type { Dialect, PushBody, PushEncoding } from "../dialects/contract.ts";
import type { PushNotification, PushOutcome, PushSender } from "../engine/deliveries/push-sender.ts";
import type { EngineLimits, EngineOptions, EngineTimes } from "../engine/options.ts";
import { ProtocolError } from "../model/errors.ts";
import type { Loss } from "../model/loss.ts";
import type { Clock, IdGenerator } from "../model/ports.ts";

/** How push notifications are delivered. */
export interface PushOptions {
  /**
   * Let webhooks be in private networks and on this machine. Anyone who may call can then make the server call there;
   * default: only where no other machine may call.
   */
  readonly allowPrivateTargets?: boolean;
  /** Attempts at one notification before its config is given up. Default: 12. */
  readonly attempts?: number;
  /** Longest time of one attempt. Default: 10 s. */
  readonly timeoutMs?: number;
  /** A notification that failed is tried again at most this long after; then twice as long each time. Default: 5 s. */
  readonly retryMs?: number;
  /** Signs every notification with a secret shared with the receivers. */
  readonly hmac?: { readonly secret: string };
  /** Signs every notification with a key whose public part is at `/.well-known/jwks.json`. */
  readonly jwt?: Omit<SigningKeyOptions, "jku"> & {
    /** Default: the address of the server. */
    readonly issuer?: string;
  };
  /** Sends notifications. Default: a `fetch` that only calls allowed targets. */
  readonly fetch?: PushFetch;
}

interface PushDependencies {
  readonly dialects: readonly Dialect[];
  readonly clock: Clock;
  readonly ids: IdGenerator;
  /** Throws LOSS_REFUSED if losses are not allowed. */
  readonly report: (dialect: string, losses: readonly Loss[]) => void;
  readonly baseUrl: () => string;
  /** Only this machine can call, so webhooks on it and around it do no harm. */
  readonly local?: boolean;
  /** The key of `jwt`. */
  readonly key: SigningKey | undefined;
}

interface PushSetup {
  readonly engine: Pick<EngineOptions, "push" | "pushSender">;
  readonly limits: Partial<EngineLimits>;
  readonly times: Partial<EngineTimes>;
}

const DEFAULT_TIMEOUT_MS = 10_000;

export function openPush(given: boolean | PushOptions, dependencies: PushDependencies): PushSetup {
  if (given === false) return { engine: { push: false }, limits: {}, times: {} };
  const options = given === true ? {} : given;
  const { attempts, timeoutMs, retryMs } = options;
  const policy = { allowPrivate: options.allowPrivateTargets ?? dependencies.local === true };
  const { check } = createTargetPolicy(policy);
  const guarded = createGuardedPost({ ...policy, timeoutMs: timeoutMs ?? DEFAULT_TIMEOUT_MS });
  const encodings = new Map(
    dependencies.dialects.flatMap(({ name, serving: { push } }) => (push ? [[name, push] as const] : [])),
  );
  const sending = { ...dependencies, ...options, encodings, fetch: options.fetch ?? guarded };
  const pushSender: PushSender = {
    sendsWholeTask: (dialect) => encodings.get(dialect)?.wholeTask === true,
    /** For a target that the URL alone shows to be forbidden. */
    refuses(url) {
      try {
        check(url);
        return false;
      } catch {
        return true;
      }
    },
    send: (notification, signal) => send(sending, notification, signal),
  };
  return {
    engine: { push: true, pushSender },
    limits: attempts === undefined ? {} : { pushAttempts: attempts },
    times: {
      ...(timeoutMs === undefined ? undefined : { pushTimeoutMs: timeoutMs }),
      ...(retryMs === undefined ? undefined : { pushRetryMs: retryMs }),
    },
  };
}

/** The part of `fetch` that is used. */
type PushFetch = (url: string, init: RequestInit) => Promise<Pick<Response, "status" | "body">>;

interface Sending extends PushDependencies, Pick<PushOptions, "hmac" | "jwt"> {
  /** By name of the dialect that a config was registered in. */
  readonly encodings: ReadonlyMap<string, PushEncoding>;
  readonly fetch: PushFetch | ReturnType<typeof createGuardedPost>;
}

/** The number of the event in its task's log: a receiver that sees it again has had it already. */
const EVENT_HEADER = "x-dragoman-event";
/** Both names are in use; neither version of the protocol defines one. */
const TOKEN_HEADERS = ["x-a2a-notification-token", "a2a-notification-token"] as const;

/** Encodes an event in the dialect its config was registered in, and posts it. */
async function send(options: Sending, notification: PushNotification, signal: AbortSignal): Promise<PushOutcome> {
  const { config, frame, task } = notification;
  const encoding = options.encodings.get(config.dialect);
  if (encoding === undefined) return { ok: false, reason: `${config.dialect} is not supported`, final: true };
  let encoded: PushBody;
  try {
    encoded = await encoding.encode(frame, task, (losses) => options.report(config.dialect, losses));
  } catch (error) {
    if (!ProtocolError.is(error) || error.code !== "LOSS_REFUSED") throw error;
    return { ok: false, reason: error.message, final: true };
  }
  const headers = {
    "content-type": encoded.contentType,
    "user-agent": "dragoman",
    [EVENT_HEADER]: String(frame.number),
    ...(await authenticationHeaders(options, config, encoded.body)),
  };
  try {
    const request = { method: "POST", headers, body: encoded.body, redirect: "manual", signal } as const;
    const { status, body } = await options.fetch(config.url, request);
    // It is not read, and may be endless.
    await body?.cancel();
    return status >= 200 && status < 300 ? { ok: true } : { ok: false, reason: `HTTP ${status}` };
  } catch (error) {
    return { ok: false, reason: failureReason(error, signal) };
  }
}

/** Authenticates to the receiver: with the credentials of its config, and with our signatures. */
async function authenticationHeaders(
  { baseUrl, clock, hmac, ids, jwt, key }: Sending,
  { url, token, authentication, taskId }: PushNotification["config"],
  body: string,
): Promise<Record<string, string>> {
  const now = clock.now();
  const headers: Record<string, string> = {};
  if (token !== undefined && token !== "") for (const name of TOKEN_HEADERS) headers[name] = token;
  if (hmac !== undefined) headers[PUSH_SIGNATURE_HEADER] = signPush(hmac.secret, { url, body }, now);
  if (key !== undefined) {
    const issuer = jwt?.issuer ?? baseUrl();
    const claims = { issuer, audience: new URL(url).origin, taskId, body, id: ids.message(), now };
    const signed = await createPushToken(key, claims);
    headers[PUSH_TOKEN_HEADER] = signed;
    // Where receivers of signed notifications have always looked for it.
    headers.authorization = `Bearer ${signed}`;
  }
  const { scheme = "", credentials = "" } = authentication ?? {};
  if (credentials !== "") headers.authorization = `${scheme} ${credentials}`.trim();
  return headers;
}

/** An error code, never a message: messages may contain the URL, and with it secrets. */
function failureReason(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return "no answer in time";
  const code = codeOf(error) ?? (error instanceof Error ? codeOf(error.cause) : undefined);
  return code === undefined ? "could not be sent" : `could not be sent (${code})`;
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^[A-Za-z][\w-]{0,60}$/.test(code) ? code : undefined;
}
