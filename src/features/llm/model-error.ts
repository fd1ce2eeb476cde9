import { statusText } from "../../core/model/status-texts.ts";

/** An error in the body of a response, or in an event of a stream that began with status 200. */
export interface ChatFailure {
  readonly reason: string;
  /** As an HTTP status; undefined if the server names none. */
  readonly status: number | undefined;
}

/** Why a request failed, in a sentence that callers may read: never with the key, the address or a response's body. */
export class ModelError extends Error {
  override readonly name = "ModelError";
  /** Whether another try may succeed. */
  readonly isTemporary: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    options: ErrorOptions & { isTemporary?: boolean; retryAfterMs?: number | undefined } = {},
  ) {
    super(message, options);
    this.isTemporary = options.isTemporary ?? false;
    this.retryAfterMs = options.retryAfterMs;
  }
}

const MAX_REASON_LENGTH = 300;
const TEMPORARY_STATUSES: ReadonlySet<number> = new Set([408, 409, 425, 429, 500, 502, 503, 504, 529]);

/** An account without credit is reported with the same status as too many requests; the last one is Zhipu's code. */
const WITHOUT_CREDIT = /insufficient_quota|exceeded_current_quota|"1113"/;

interface ReceivedFailure extends ChatFailure {
  /** All that was received, for the log. */
  readonly text: string;
  readonly retryAfterMs?: number | undefined;
}

export function toModelError(failure: ReceivedFailure, apiKey: string | undefined): ModelError {
  const { retryAfterMs, status, text } = failure;
  const reason = hideKey(failure.reason, apiKey).replace(/\s+/g, " ").trim().slice(0, MAX_REASON_LENGTH);
  const cause = new Error(`HTTP ${status ?? 200}: ${reason || hideKey(text, apiKey).slice(0, MAX_REASON_LENGTH)}`);
  if (status === 401 || status === 403) return new ModelError(statusText("modelRefusedKey"), { cause });
  const isTemporary = TEMPORARY_STATUSES.has(status ?? 500) && !WITHOUT_CREDIT.test(text);
  if (status === 429 && isTemporary) {
    const message =
      retryAfterMs === undefined
        ? statusText("modelBusy")
        : statusText("modelBusyFor", Math.max(1, Math.ceil(retryAfterMs / 1000)));
    return new ModelError(message, { cause, isTemporary, retryAfterMs });
  }
  const sentence = status === undefined ? statusText("modelReported") : statusText("modelFailed", status);
  // A reason for a status of 4xx concerns the request: a model that does not exist, too many tokens, a bad image. Without
  // a status, nothing else tells the caller what happened.
  const isAboutRequest = (status === undefined || (status >= 400 && status < 500)) && reason !== "";
  return new ModelError(isAboutRequest ? `${sentence} ${reason}` : sentence, { cause, isTemporary, retryAfterMs });
}

/** A server may quote the key it was sent, and some quote one that it knows: no word that looks like one is shown. */
function hideKey(text: string, apiKey: string | undefined): string {
  const hidden = apiKey === undefined || apiKey === "" ? text : text.replaceAll(apiKey, "***");
  return hidden.replace(/\b(?:sk|pk|key|org)-[\w*.-]{4,}/gi, "***");
}

/** Seconds, milliseconds in the header of OpenAI, or a date. */
export function readRetryAfter(headers: Headers, now: number): number | undefined {
  const precise = Number(headers.get("retry-after-ms") ?? Number.NaN);
  if (precise >= 0) return precise;
  const given = headers.get("retry-after");
  if (given === null || given.trim() === "") return undefined;
  const seconds = Number(given);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const date = Date.parse(given);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
