import { LoginError, type LoginErrorCode } from "../auth/login/contract.ts";
import { ConnectionError, type ConnectionErrorCode } from "../client/errors.ts";
import { type ErrorCode, ProtocolError } from "../model/errors.ts";
import { StoreError, type StoreErrorCode } from "../store/errors.ts";

/** Exit codes. The first six are defined by the a2a-cli specification, section 11.6. */
export const EXIT = {
  done: 0,
  failure: 1,
  usage: 2,
  unreachable: 3,
  authentication: 4,
  timeout: 5,
  /** A server ended by its watchdog; `STALLED_EXIT_CODE` there. */
  stalled: 70,
  /** 128 + SIGINT, as shells expect. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command with a non-zero code and no further output. */
export class CommandExit extends Error {
  readonly exit: ExitCode;

  constructor(exit: ExitCode) {
    super(`Ended with ${exit}.`);
    this.name = "Ended";
    this.exit = exit;
  }
}

/** Codes of the a2a-cli specification, appendix D, for errors outside the protocol. */
type CliErrorCode =
  | "A2ACLI_ERR_USAGE"
  | "A2ACLI_ERR_CARD_NOT_FOUND"
  | "A2ACLI_ERR_CARD_INVALID"
  | "A2ACLI_ERR_UNREACHABLE"
  | "A2ACLI_ERR_CREDENTIALS_MISSING"
  | "A2ACLI_ERR_AUTH_FAILED"
  | "A2ACLI_ERR_TIMEOUT"
  | "A2ACLI_ERR_INTERNAL";

/** Errors that neither the protocol nor the specification defines. Their lists are closed, so these have our prefix. */
type DragomanErrorCode = `DRAGOMAN_ERR_${string}`;

export const CLI_ERROR_EXITS = {
  A2ACLI_ERR_USAGE: EXIT.usage,
  A2ACLI_ERR_CARD_NOT_FOUND: EXIT.unreachable,
  A2ACLI_ERR_CARD_INVALID: EXIT.failure,
  A2ACLI_ERR_UNREACHABLE: EXIT.unreachable,
  A2ACLI_ERR_CREDENTIALS_MISSING: EXIT.authentication,
  A2ACLI_ERR_AUTH_FAILED: EXIT.authentication,
  A2ACLI_ERR_TIMEOUT: EXIT.timeout,
  A2ACLI_ERR_INTERNAL: EXIT.failure,
} as const satisfies Record<CliErrorCode, ExitCode>;

/** What a command reports when it fails. `hint` suggests a fix. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  readonly a2aCode: string | number | null;
  readonly exit: ExitCode;
}

/** An error raised by the CLI itself. */
export class CommandError extends Error {
  readonly code: CliErrorCode | DragomanErrorCode;
  readonly hint: string | null;

  constructor(
    code: CliErrorCode | DragomanErrorCode,
    message: string,
    hint: string | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "CommandError";
    this.code = code;
    this.hint = hint;
  }
}

export function usageError(message: string, hint: string | null = null): CommandError {
  return new CommandError("A2ACLI_ERR_USAGE", message, hint);
}

interface ProtocolName {
  /** The error's name in A2A section 3.3.2, or the code used where A2A defines none. */
  readonly name: string;
  /** Its JSON-RPC code, to which all bindings can be mapped. */
  readonly number: number | null;
  readonly exit: ExitCode;
}

const a2aError = (name: string, number: number): ProtocolName => ({ name, number, exit: EXIT.failure });
const cliError = (name: CliErrorCode | DragomanErrorCode, exit: ExitCode): ProtocolName => ({
  name,
  number: null,
  exit,
});

const PROTOCOL_NAMES = {
  TASK_NOT_FOUND: a2aError("TaskNotFoundError", -32001),
  TASK_NOT_CANCELABLE: a2aError("TaskNotCancelableError", -32002),
  PUSH_NOTIFICATION_NOT_SUPPORTED: a2aError("PushNotificationNotSupportedError", -32003),
  UNSUPPORTED_OPERATION: a2aError("UnsupportedOperationError", -32004),
  CONTENT_TYPE_NOT_SUPPORTED: a2aError("ContentTypeNotSupportedError", -32005),
  INVALID_AGENT_RESPONSE: a2aError("InvalidAgentResponseError", -32006),
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: a2aError("ExtendedAgentCardNotConfiguredError", -32007),
  EXTENSION_SUPPORT_REQUIRED: a2aError("ExtensionSupportRequiredError", -32008),
  VERSION_NOT_SUPPORTED: a2aError("VersionNotSupportedError", -32009),
  PARSE_ERROR: a2aError("JSONParseError", -32700),
  INVALID_REQUEST: a2aError("InvalidRequestError", -32600),
  METHOD_NOT_FOUND: a2aError("MethodNotFoundError", -32601),
  INVALID_PARAMS: a2aError("InvalidParamsError", -32602),
  INTERNAL_ERROR: a2aError("InternalError", -32603),
  UNAUTHENTICATED: cliError("A2ACLI_ERR_AUTH_FAILED", EXIT.authentication),
  PERMISSION_DENIED: cliError("A2ACLI_ERR_AUTH_FAILED", EXIT.authentication),
  RESOURCE_EXHAUSTED: cliError("DRAGOMAN_ERR_RESOURCE_EXHAUSTED", EXIT.failure),
  UNAVAILABLE: cliError("A2ACLI_ERR_UNREACHABLE", EXIT.unreachable),
  IDEMPOTENCY_CONFLICT: cliError("DRAGOMAN_ERR_IDEMPOTENCY_CONFLICT", EXIT.failure),
  LOSS_REFUSED: cliError("DRAGOMAN_ERR_LOSS_REFUSED", EXIT.failure),
} as const satisfies Record<ErrorCode, ProtocolName>;

export const CONNECTION_CODES = {
  unreachable: { code: "A2ACLI_ERR_UNREACHABLE", exit: EXIT.unreachable },
  timeout: { code: "A2ACLI_ERR_TIMEOUT", exit: EXIT.timeout },
  aborted: { code: "DRAGOMAN_ERR_INTERRUPTED", exit: EXIT.interrupted },
  "bad-card": { code: "A2ACLI_ERR_CARD_INVALID", exit: EXIT.failure },
  "no-interface": { code: "DRAGOMAN_ERR_NO_INTERFACE", exit: EXIT.failure },
  "broken-stream": { code: "A2ACLI_ERR_UNREACHABLE", exit: EXIT.unreachable },
} as const satisfies Record<ConnectionErrorCode, { code: CliErrorCode | DragomanErrorCode; exit: ExitCode }>;

const LOGIN_CODES = {
  refused: "A2ACLI_ERR_AUTH_FAILED",
  unavailable: "A2ACLI_ERR_UNREACHABLE",
  untrusted: "A2ACLI_ERR_AUTH_FAILED",
  unsupported: "A2ACLI_ERR_AUTH_FAILED",
  "unknown-scheme": "A2ACLI_ERR_USAGE",
  incomplete: "A2ACLI_ERR_CREDENTIALS_MISSING",
  aborted: "DRAGOMAN_ERR_INTERRUPTED",
} as const satisfies Record<LoginErrorCode, CliErrorCode | DragomanErrorCode>;

const STORE_HINTS = {
  "newer-schema": "The store was written by a newer dragoman. Install that version, or point --store elsewhere.",
  "older-schema": "Run: dragoman store migrate",
  "in-use": "Stop the process that uses the store, or point --store elsewhere.",
  "not-a-database": "The file is something else. Check --store.",
  unavailable: "Check the address and whether the driver is installed; dragoman doctor tells more.",
  full: "Free some space on the disk.",
  "read-only": "Make the folder of the store writable, or point --store elsewhere.",
  damaged: "dragoman doctor --deep names what is damaged; restore the file from a backup.",
  io: "Check the disk and the permissions of the file.",
} as const satisfies Record<StoreErrorCode, string>;

const HINTS: Partial<Record<ErrorCode, string>> = {
  TASK_NOT_FOUND: "Check the task id, and that the caller owns the task. --debug shows the agent's answer.",
  TASK_NOT_CANCELABLE: "The task has already ended; task get shows how.",
  VERSION_NOT_SUPPORTED: "card get lists the versions the agent speaks; choose one with --a2a-version.",
  UNSUPPORTED_OPERATION:
    "The task may have ended, or the agent cannot do this; task get and card get tell. --debug shows the agent's answer.",
  PERMISSION_DENIED: "These credentials do not allow it. Use others, or log in with more scopes: auth login --scopes.",
  RESOURCE_EXHAUSTED: "Too many requests or too much data; try again later.",
  INVALID_PARAMS: "--debug shows the request and the agent's answer.",
};

export function toFailure(error: unknown): Failure {
  if (error instanceof CommandError) return commandFailure(error);
  if (ProtocolError.is(error)) return protocolFailure(error);
  if (ConnectionError.is(error)) return connectionFailure(error);
  if (error instanceof LoginError) {
    const code = LOGIN_CODES[error.code];
    return { code, message: error.message, hint: null, a2aCode: null, exit: exitOf(code) };
  }
  if (error instanceof StoreError) {
    return dragomanFailure(
      `DRAGOMAN_ERR_STORE_${error.code.toUpperCase().replaceAll("-", "_")}`,
      error.message,
      STORE_HINTS[error.code],
    );
  }
  if (error instanceof Error && error.name === "ConfigError") {
    return dragomanFailure(
      "DRAGOMAN_ERR_CONFIG",
      error.message,
      "dragoman config show <file> prints what a valid file means.",
    );
  }
  if (error instanceof Error && error.name === "AgentModuleError") {
    return dragomanFailure(
      "DRAGOMAN_ERR_AGENT_MODULE",
      error.message,
      "dragoman doctor checks every agent of a configuration.",
    );
  }
  if (error instanceof Error && error.name === "KeyError")
    return dragomanFailure("DRAGOMAN_ERR_KEY", error.message, null);
  if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") {
    return dragomanFailure(
      "DRAGOMAN_ERR_PORT_IN_USE",
      describePortInUse(error),
      error.message.startsWith("gRPC")
        ? "Choose another port with --grpc-port, or stop the process that has it. --grpc-port off serves no gRPC."
        : "Choose another port with --port, or stop the process that has it.",
    );
  }
  const message = error instanceof Error ? error.message : String(error);
  return { code: "A2ACLI_ERR_INTERNAL", message, hint: null, a2aCode: null, exit: EXIT.failure };
}

function dragomanFailure(code: DragomanErrorCode, message: string, hint: string | null): Failure {
  return { code, message, hint, a2aCode: null, exit: EXIT.failure };
}

function commandFailure(error: CommandError): Failure {
  const exit = exitOf(error.code);
  return { code: error.code, message: error.message, hint: error.hint, a2aCode: null, exit };
}

function exitOf(code: CliErrorCode | DragomanErrorCode): ExitCode {
  if (Object.hasOwn(CLI_ERROR_EXITS, code)) return CLI_ERROR_EXITS[code as CliErrorCode];
  return code === "DRAGOMAN_ERR_INTERRUPTED" ? EXIT.interrupted : EXIT.failure;
}

function connectionFailure(error: ConnectionError): Failure {
  const hint = error.code === "timeout" ? "Allow more time with --timeout, or use --async and follow the task." : null;
  return { ...CONNECTION_CODES[error.code], message: error.message, hint, a2aCode: null };
}

function protocolFailure(error: ProtocolError): Failure {
  const { name, number, exit } = PROTOCOL_NAMES[error.code];
  const wait = error.retryAfter === undefined ? "" : ` The agent asks to wait ${error.retryAfter} s.`;
  return { code: name, message: `${error.message}${wait}`, hint: HINTS[error.code] ?? null, a2aCode: number, exit };
}

function describePortInUse(error: Error): string {
  const port = "port" in error && typeof error.port === "number" ? `Port ${error.port}` : "The port";
  return `${port} is already in use.`;
}

/** The JSON form of a failure: a2a-cli specification, appendix B. */
export function errorEnvelope({ code, message, hint, a2aCode }: Failure): { readonly error: Omit<Failure, "exit"> } {
  return { error: { code, message, hint, a2aCode } };
}
