import { GuardedFetchError, type GuardedFetchErrorCode } from "../auth/guarded-fetch/errors.ts";
import { ProtocolError } from "../model/errors.ts";
import { canParseUrl } from "../model/url.ts";
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

/** Safe for messages and logs: user info and query may contain keys. */
export function redactUrl(url: string): string {
  if (!canParseUrl(url)) return "an invalid URL";
  const { host, pathname, protocol } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/** A copy of the agent's error with another message or a delay. */
export function changeError(
  error: ProtocolError,
  { message = error.message, cause = error.cause, retryAfter = error.retryAfter }: Partial<ProtocolError>,
): ProtocolError {
  const { code, data, metadata, violations } = error;
  return new ProtocolError(code, message, { cause, data, metadata, retryAfter, violations });
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

/** What is read is not a TLS record. */
const NO_TLS_CODE = /^(?:ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)|EPROTO$)/;
const TLS_CODE = /^(?:ERR_TLS|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|ERR_SSL)/;

/** Error codes that only occur before any part of a request can have arrived … */
const NOT_CONNECTED_CODE =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_TLS|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/;
/** … and system calls that precede sending. */
const CONNECT_SYSCALLS = new Set(["connect", "getaddrinfo"]);

function* causesOf(error: unknown): Generator<Error, void, undefined> {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth++) yield cause;
}

function textMember(error: Error, name: "code" | "syscall"): string {
  const value = (error as NodeJS.ErrnoException)[name];
  return typeof value === "string" ? value : "";
}

/** Whether the connection failed so early that the agent cannot have received anything. */
export function failedBeforeSending(error: ConnectionError): boolean {
  return [...causesOf(error.cause)].some(
    (cause) =>
      isRefusal(cause) ||
      cause instanceof NotConnectedError ||
      NOT_CONNECTED_CODE.test(textMember(cause, "code")) ||
      CONNECT_SYSCALLS.has(textMember(cause, "syscall")),
  );
}

const URL_IN_TEXT = /https?:\/\/[^\s"']+/g;

/** The first error in the chain of causes that a user can act on. */
function explainCause(error: unknown): Explanation {
  let message = "unknown reason";
  for (const cause of causesOf(error)) {
    if (cause instanceof RedirectError) {
      return { title: "Redirect refused", what: cause.message, advice: cause.advice };
    }
    const code = textMember(cause, "code");
    if (isRefusal(cause)) {
      return { title: `Blocked by the guarded fetch (${code})`, advice: "Allow the target there if you trust it." };
    }
    const known = SOCKET_CAUSES[code];
    if (known !== undefined) return known;
    if (NO_TLS_CODE.test(code)) {
      return {
        title: "No TLS",
        what: "the server does not answer with TLS at this port",
        advice: "Use http:// if the agent is served without TLS, or another port.",
      };
    }
    if (TLS_CODE.test(code)) {
      return {
        title: `TLS certificate refused (${code})`,
        advice: "Check the certificate; NODE_EXTRA_CA_CERTS adds a certificate authority of your own.",
      };
    }
    if (!(cause instanceof CarrierError) && cause.message !== "") message = cause.message;
  }
  const what = message.replace(URL_IN_TEXT, redactUrl);
  return { title: "Connection failed", what, advice: "Check the address and the network." };
}

export interface AttemptedCall {
  readonly method: string;
  readonly url: string;
  readonly timeoutMs?: number | undefined;
}

export function toConnectionError(error: unknown, attempted: AttemptedCall): ConnectionError {
  if (ConnectionError.is(error)) return error;
  const url = redactUrl(attempted.url);
  const where = `${attempted.method} ${url}`;
  const fail = (code: ConnectionErrorCode, message: string, permanent = false) =>
    new ConnectionError(code, message, { cause: error, permanent });
  if (error instanceof SseLimitError) {
    return fail("broken-stream", `${where}: one event is larger than ${error.maxEventBytes} bytes.`, true);
  }
  const code = error instanceof CarrierError ? error.code : "unreachable";
  switch (code) {
    case "aborted":
      return fail("aborted", `${where} was aborted by the caller.`);
    case "timeout": {
      const advice = "Allow more time with timeoutMs, or let the agent return at once and follow its task.";
      return fail("timeout", `${where} did not answer within ${attempted.timeoutMs ?? 0} ms. ${advice}`);
    }
    case "too-large":
      return fail("broken-stream", `${where}: the answer is larger than this client accepts.`, true);
    case "broken-stream":
      return fail("broken-stream", `${where}: the connection broke while the answer was read.`);
    case "unreachable": {
      const { advice, title, what } = explainCause(error);
      const reason = what === undefined ? "" : `: ${what}`;
      return fail("unreachable", `${title}: ${url}${reason}. ${advice}`, [...causesOf(error)].some(isRefusal));
    }
  }
}

/** Error codes of a guarded `fetch` which show that no request was made. */
const REFUSED_TARGETS: ReadonlySet<GuardedFetchErrorCode> = new Set<GuardedFetchErrorCode>([
  "bad-url",
  "forbidden-scheme",
  "credentials-in-url",
  "forbidden-target",
]);

/** This side refused to send the request, and would refuse again. */
function isRefusal(error: Error): boolean {
  return error instanceof RedirectError || (error instanceof GuardedFetchError && REFUSED_TARGETS.has(error.code));
}
