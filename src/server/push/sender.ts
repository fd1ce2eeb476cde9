import { PUSH_SIGNATURE_HEADER, signPush } from "../../auth/push-signature.ts";
import { createPushToken, PUSH_TOKEN_HEADER } from "../../auth/push-token.ts";
import type { SigningKey } from "../../auth/signing-key.ts";
import type { PushBody, PushEncoding } from "../../dialects/contract.ts";
import type { PushNotification, PushOutcome, PushSender } from "../../engine/push-sender.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { Loss } from "../../model/loss.ts";
import type { Clock, Ids } from "../../model/ports.ts";
import type { StoredPushConfig } from "../../store/contract.ts";

/** As much of `fetch` as is needed. */
export type PushFetch = (url: string, init: RequestInit) => Promise<Pick<Response, "status" | "body">>;

export interface PushSenderOptions {
  /** By the name of the dialect that a config was registered in. */
  readonly encodings: ReadonlyMap<string, PushEncoding>;
  readonly fetch: PushFetch;
  /** Throws for a target that will not be called, as far as its spelling tells. */
  readonly check: (url: string) => unknown;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Throws LOSS_REFUSED where nothing may be lost. */
  readonly report: (dialect: string, losses: readonly Loss[]) => void;
  /** Shared with all receivers. */
  readonly secret?: string;
  readonly signing?: { readonly key: SigningKey; readonly issuer: () => string };
}

/** The number of the event in its task's log: whoever sees it again has been told already. */
export const EVENT_HEADER = "x-dragoman-event";
/** In use under both names, and named by neither version of the protocol. */
export const TOKEN_HEADERS = ["x-a2a-notification-token", "a2a-notification-token"] as const;

/** Puts events into the words of the dialect their config was registered in, and posts them. */
export function createPushSender(options: PushSenderOptions): PushSender {
  return {
    showsWholeTask: (dialect) => options.encodings.get(dialect)?.wholeTask === true,
    refuses: (url) => isRefused(options.check, url),
    send: (notification, signal) => send(options, notification, signal),
  };
}

function isRefused(check: PushSenderOptions["check"], url: string): boolean {
  try {
    check(url);
    return false;
  } catch {
    return true;
  }
}

async function send(
  options: PushSenderOptions,
  notification: PushNotification,
  signal: AbortSignal,
): Promise<PushOutcome> {
  const { config, frame, task } = notification;
  const encoding = options.encodings.get(config.dialect);
  if (encoding === undefined) return { ok: false, reason: `${config.dialect} is not spoken here`, final: true };
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
    ...(await proofs(options, config, encoded.body)),
  };
  try {
    const request = { method: "POST", headers, body: encoded.body, redirect: "manual", signal } as const;
    const { status, body } = await options.fetch(config.url, request);
    // What it says is nobody's business, and may be endless.
    await body?.cancel();
    return status >= 200 && status < 300 ? { ok: true } : { ok: false, reason: `HTTP ${status}` };
  } catch (error) {
    return { ok: false, reason: whyUnsent(error, signal) };
  }
}

/** What shows the receiver who is calling: what it asked for itself, and our signatures. */
async function proofs(
  { clock, ids, secret, signing }: PushSenderOptions,
  { url, token, authentication, taskId }: StoredPushConfig,
  body: string,
): Promise<Record<string, string>> {
  const now = clock.now();
  const headers: Record<string, string> = {};
  if (token !== undefined && token !== "") for (const name of TOKEN_HEADERS) headers[name] = token;
  if (secret !== undefined) headers[PUSH_SIGNATURE_HEADER] = signPush(secret, { url, body }, now);
  if (signing !== undefined) {
    const claims = { issuer: signing.issuer(), audience: new URL(url).origin, taskId, body, id: ids.message(), now };
    const signed = await createPushToken(signing.key, claims);
    headers[PUSH_TOKEN_HEADER] = signed;
    // Where receivers of signed notifications have always looked for it.
    headers.authorization = `Bearer ${signed}`;
  }
  const { scheme = "", credentials = "" } = authentication ?? {};
  if (credentials !== "") headers.authorization = `${scheme} ${credentials}`.trim();
  return headers;
}

/** A word that is made for programs, never a message: those may repeat the address, with whatever is in it. */
function whyUnsent(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return "no answer in time";
  const code = codeOf(error) ?? (error instanceof Error ? codeOf(error.cause) : undefined);
  return code === undefined ? "could not be sent" : `could not be sent (${code})`;
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^[A-Za-z][\w-]{0,60}$/.test(code) ? code : undefined;
}
