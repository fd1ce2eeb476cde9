/** Errors of the Feishu library as ours. Its own contain requests, and with them secrets. */

import { ChannelError } from "../../../../core/wire/channel.ts";
import { DialError } from "../../../../core/wire/dial-error.ts";

export class FeishuError extends Error {
  override readonly name = "FeishuError";
  /** Code of the platform; undefined if it did not answer. */
  readonly code: number | undefined;
  readonly status: number;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, code?: number, status = 200, retryAfterMs?: number) {
    super(code === undefined ? message : `${message} (code ${code})`);
    this.code = code;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** App ID or App Secret are wrong, or the app may not connect. */
const CREDENTIALS: ReadonlySet<number> = new Set([403, 514, 10003, 10012, 10013, 10014, 20002, 20003]);
const RATE_LIMITED: ReadonlySet<number> = new Set([11232, 11233, 230020, 99991400]);
/** Not in the chat, or without permission there. */
const NO_ACCESS: ReadonlySet<number> = new Set([230002, 230006, 230013, 230018, 230027, 230035, 232009, 99991672]);
const NO_SUCH_ROOM = /invalid receive_id/;

export function fromLibrary(error: unknown): FeishuError {
  const { message, response } = error as { message?: unknown; response?: LibraryResponse };
  const text = typeof message === "string" ? message : String(error);
  if (response !== undefined) {
    const { data, headers, status } = response;
    const seconds = Number(headers?.["x-ogw-ratelimit-reset"] ?? Number.NaN);
    const wait = Number.isFinite(seconds) ? seconds * 1000 : undefined;
    return new FeishuError(data?.msg ?? `Status ${status}`, data?.code ?? status, status, wait);
  }
  const [, code, reason = ""] = /code[:=] ?(\d+), msg[:=] ?(.*)$/s.exec(text) ?? [];
  return code === undefined ? new FeishuError(text) : new FeishuError(reason, Number(code));
}

interface LibraryResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly data?: { readonly code?: number; readonly msg?: string };
}

/** An error without an answer, or of the platform itself, does not say whether the post has arrived. */
export function toPostError(error: unknown): unknown {
  if (!(error instanceof FeishuError) || error.code === undefined || error.status >= 500) return error;
  const { code, message, retryAfterMs = 1_000, status } = error;
  if (status === 429 || RATE_LIMITED.has(code)) {
    return new ChannelError("rate-limited", message, { retryAfterMs, cause: error });
  }
  const isClosedToUs = NO_ACCESS.has(code) || NO_SUCH_ROOM.test(message);
  return new ChannelError(isClosedToUs ? "no-access" : "refused", message, { cause: error });
}

export function toDialError(error: unknown, signal: AbortSignal): DialError {
  if (error instanceof DialError) return error;
  if (signal.aborted) return new DialError("stopped", "The dialling was stopped.");
  if (!(error instanceof FeishuError) || error.code === undefined) {
    return new DialError("unreachable", `Feishu could not be reached: ${(error as Error).message}`);
  }
  const { code, message } = error;
  if (CREDENTIALS.has(code)) {
    const fields = "Copy `appId` and `appSecret` from 开发者后台 → 凭证与基础信息 → 应用凭证 (App ID, App Secret).";
    return new DialError("refused", `Feishu does not accept the app: ${message}. ${fields}`, 401);
  }
  return new DialError("refused", `Feishu refused the connection: ${message}.`, 403);
}
