import { GuardedFetchError, type GuardedFetchErrorCode } from "../auth/guarded-fetch/errors.ts";
import { CarrierError, NotConnectedError } from "../wire/exchange.ts";
import { SseLimitError } from "../wire/sse.ts";
import { RedirectError } from "./transport/credential-origins.ts";

/** Failures of the connection to the agent. Errors that the agent returns are `ProtocolError`s. */

export const CONNECTION_ERROR_CODES = [
  "unreachable",
  "timeout",
  "aborted",
  "bad-card",
  "no-interface",
  "broken-stream",
] as const;

export type ConnectionErrorCode = (typeof CONNECTION_ERROR_CODES)[number];

interface ConnectionErrorOptions {
  readonly cause?: unknown;
  /** The task whose stream broke: it continues at the agent, and can be subscribed to again. */
  readonly taskId?: string;
  /** Number of the last event that was delivered, if the agent numbers events. */
  readonly after?: number;
  /** Retrying cannot help, e.g. because the response exceeds the size limit. */
  readonly permanent?: boolean;
}

const BRAND = Symbol.for("dragoman.ConnectionError");

export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  readonly code: ConnectionErrorCode;
  readonly taskId: string | undefined;
  readonly after: number | undefined;
  readonly permanent: boolean;

  constructor(code: ConnectionErrorCode, message: string, options: ConnectionErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.taskId = options.taskId;
    this.after = options.after;
    this.permanent = options.permanent ?? false;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** True also for an instance of another copy of this package, where `instanceof` would fail. */
  static is(error: unknown): error is ConnectionError {
    return typeof error === "object" && error !== null && BRAND in error;
  }
}

/** Converts carrier errors into errors that say what was attempted, what happened and what to do. */

/** Safe for messages and logs: user info and query may contain keys. */
export function redactUrl(url: string): string {
  if (!URL.canParse(url)) return "an invalid URL";
  const { host, pathname, protocol } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

interface Explanation {
  /** Start of the message, before the URL. */
  readonly title: string;
  /** Details that the title does not contain. */
  readonly what?: string;
  readonly advice: string;
}

const SOCKET_CAUSES: Readonly<Record<string, Explanation>> = {
  ECONNREFUSED: {
    title: "Connection refused",
    advice: "Check that the agent is running and that the port is right.",
  },
  ENOTFOUND: { title: "Host not found", advice: "Check the spelling of the host." },
  EAI_AGAIN: { title: "Host name lookup failed", advice: "Check the network and the name server." },
  ECONNRESET: { title: "Connection reset", advice: "Try again, or ask the agent's operator." },
  UND_ERR_SOCKET: { title: "Connection closed", advice: "Try again, or ask the agent's operator." },
  EHOSTUNREACH: { title: "No route to host", advice: "Check the network." },
  ENETUNREACH: { title: "Network unreachable", advice: "Check the network." },
  ETIMEDOUT: { title: "Connection timed out", advice: "Check the address and the firewalls on the way." },
  UND_ERR_CONNECT_TIMEOUT: { title: "Connection timed out", advice: "Check the address and the firewalls on the way." },
  UND_ERR_HEADERS_TIMEOUT: {
    title: "No response",
    what: "the platform's own fetch gave up waiting",
    advice: "Stream, or let the agent return at once and follow its task.",
  },
};

const TLS_CODE = /^(?:ERR_TLS|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|ERR_SSL)/;

/** Error codes that only occur before any part of a request can have arrived … */
const NOT_CONNECTED_CODE =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_TLS|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/;
/** … and system calls that precede sending. */
const CONNECT_SYSCALLS = new Set(["connect", "getaddrinfo"]);

/** Whether the connection failed so early that the agent cannot have received anything. */
export function failedBeforeSending(error: ConnectionError): boolean {
  for (let cause: unknown = error.cause, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth++) {
    if (cause instanceof RedirectError || cause instanceof NotConnectedError) return true;
    if (isRefusedTarget(cause)) return true;
    if ("code" in cause && typeof cause.code === "string" && NOT_CONNECTED_CODE.test(cause.code)) return true;
    if ("syscall" in cause && typeof cause.syscall === "string" && CONNECT_SYSCALLS.has(cause.syscall)) return true;
  }
  return false;
}

const URL_IN_TEXT = /https?:\/\/[^\s"']+/g;

/** The first error in the chain of causes that a user can act on. */
function explainCause(error: unknown): Explanation {
  let message = "";
  for (let cause: unknown = error, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth++) {
    if (cause instanceof RedirectError) {
      return { title: "Redirect refused", what: cause.message, advice: cause.advice };
    }
    if (isRefusedTarget(cause)) {
      return {
        title: `Blocked by the guarded fetch (${cause.code})`,
        advice: "Allow the target there if you trust it.",
      };
    }
    const code = "code" in cause && typeof cause.code === "string" ? cause.code : "";
    const known = SOCKET_CAUSES[code];
    if (known !== undefined) return known;
    if (TLS_CODE.test(code)) {
      return {
        title: `TLS certificate refused (${code})`,
        advice: "Check the certificate; NODE_EXTRA_CA_CERTS adds a certificate authority of your own.",
      };
    }
    if (!(cause instanceof CarrierError)) message = cause.message;
  }
  const what = message === "" ? "unknown reason" : message.replace(URL_IN_TEXT, redactUrl);
  return { title: "Connection failed", what, advice: "Check the address and the network." };
}

export interface AttemptedCall {
  readonly method: string;
  readonly url: string;
  readonly timeoutMs?: number | undefined;
}

export function toConnectionError(error: unknown, attempted: AttemptedCall): ConnectionError {
  if (ConnectionError.is(error)) return error;
  const where = `${attempted.method} ${redactUrl(attempted.url)}`;
  if (error instanceof SseLimitError) {
    return new ConnectionError("broken-stream", `${where}: one event is larger than ${error.maxEventBytes} bytes.`, {
      cause: error,
      permanent: true,
    });
  }
  const code = error instanceof CarrierError ? error.code : "unreachable";
  switch (code) {
    case "aborted":
      return new ConnectionError("aborted", `${where} was aborted by the caller.`, { cause: error });
    case "timeout":
      return new ConnectionError(
        "timeout",
        `${where} did not answer within ${attempted.timeoutMs ?? 0} ms. Allow more time with timeoutMs, or let the agent return at once and follow its task.`,
        { cause: error },
      );
    case "too-large":
      return new ConnectionError("broken-stream", `${where}: the answer is larger than this client accepts.`, {
        cause: error,
        permanent: true,
      });
    case "broken-stream":
      return new ConnectionError("broken-stream", `${where}: the connection broke while the answer was read.`, {
        cause: error,
      });
    case "unreachable": {
      const { advice, title, what } = explainCause(error);
      const reason = what === undefined ? "" : `: ${what}`;
      return new ConnectionError("unreachable", `${title}: ${redactUrl(attempted.url)}${reason}. ${advice}`, {
        cause: error,
        permanent: isPermanentRefusal(error),
      });
    }
  }
}

/** Whether a retry would be refused again. */
function isPermanentRefusal(error: unknown): boolean {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof RedirectError || isRefusedTarget(cause)) return true;
  }
  return false;
}

/** Error codes of a guarded `fetch` which show that no request was made. */
const REFUSED_TARGETS: ReadonlySet<GuardedFetchErrorCode> = new Set<GuardedFetchErrorCode>([
  "bad-url",
  "forbidden-scheme",
  "credentials-in-url",
  "forbidden-target",
]);

function isRefusedTarget(error: Error): error is GuardedFetchError {
  return error instanceof GuardedFetchError && REFUSED_TARGETS.has(error.code);
}
