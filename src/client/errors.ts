/** What can go wrong between here and the agent. What the agent itself says is a `ProtocolError`. */

export const CONNECTION_ERROR_CODES = [
  "unreachable",
  "timeout",
  "aborted",
  "bad-card",
  "no-interface",
  "broken-stream",
] as const;

export type ConnectionErrorCode = (typeof CONNECTION_ERROR_CODES)[number];

export interface ConnectionErrorOptions {
  readonly cause?: unknown;
  /** The task whose stream broke: it goes on at the agent, and can be subscribed to again. */
  readonly taskId?: string;
  /** Number of the last event that was handed over, where the agent numbers them. */
  readonly after?: number;
  /** Asking again cannot help, e.g. because the answer is larger than allowed. */
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
