import { LoginError, type LoginErrorCode } from "../auth/login/contract.ts";
import { ConnectionError, type ConnectionErrorCode } from "../client/errors.ts";
import { type ErrorCode, hasErrorCode, ProtocolError } from "../model/errors.ts";
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
export const CLI_ERROR_EXITS = {
  A2ACLI_ERR_USAGE: EXIT.usage,
  A2ACLI_ERR_CARD_NOT_FOUND: EXIT.unreachable,
  A2ACLI_ERR_CARD_INVALID: EXIT.failure,
  A2ACLI_ERR_UNREACHABLE: EXIT.unreachable,
  A2ACLI_ERR_CREDENTIALS_MISSING: EXIT.authentication,
  A2ACLI_ERR_AUTH_FAILED: EXIT.authentication,
  A2ACLI_ERR_TIMEOUT: EXIT.timeout,
  A2ACLI_ERR_INTERNAL: EXIT.failure,
} as const;

/** The lists of the protocol and of the specification are closed, so all other errors have our prefix. */
type CommandErrorCode = keyof typeof CLI_ERROR_EXITS | `DRAGOMAN_ERR_${string}`;

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
  override readonly name = "CommandError";
  readonly code: CommandErrorCode;
  readonly hint: string | null;

  constructor(code: CommandErrorCode, message: string, hint: string | null = null, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.hint = hint;
  }
}

export function usageError(message: string, hint: string | null = null): CommandError {
  return new CommandError("A2ACLI_ERR_USAGE", message, hint);
}

/**
 * The error's name in A2A section 3.3.2 and its JSON-RPC code, to which all bindings can be mapped; where A2A defines
 * none, one of our codes.
 */
const PROTOCOL_CODES = {
  TASK_NOT_FOUND: ["TaskNotFoundError", -32001],
  TASK_NOT_CANCELABLE: ["TaskNotCancelableError", -32002],
  PUSH_NOTIFICATION_NOT_SUPPORTED: ["PushNotificationNotSupportedError", -32003],
  UNSUPPORTED_OPERATION: ["UnsupportedOperationError", -32004],
  CONTENT_TYPE_NOT_SUPPORTED: ["ContentTypeNotSupportedError", -32005],
  INVALID_AGENT_RESPONSE: ["InvalidAgentResponseError", -32006],
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: ["ExtendedAgentCardNotConfiguredError", -32007],
  EXTENSION_SUPPORT_REQUIRED: ["ExtensionSupportRequiredError", -32008],
  VERSION_NOT_SUPPORTED: ["VersionNotSupportedError", -32009],
  PARSE_ERROR: ["JSONParseError", -32700],
  INVALID_REQUEST: ["InvalidRequestError", -32600],
  METHOD_NOT_FOUND: ["MethodNotFoundError", -32601],
  INVALID_PARAMS: ["InvalidParamsError", -32602],
  INTERNAL_ERROR: ["InternalError", -32603],
  UNAUTHENTICATED: ["A2ACLI_ERR_AUTH_FAILED", null],
  PERMISSION_DENIED: ["A2ACLI_ERR_AUTH_FAILED", null],
  RESOURCE_EXHAUSTED: ["DRAGOMAN_ERR_RESOURCE_EXHAUSTED", null],
  UNAVAILABLE: ["A2ACLI_ERR_UNREACHABLE", null],
  IDEMPOTENCY_CONFLICT: ["DRAGOMAN_ERR_IDEMPOTENCY_CONFLICT", null],
  LOSS_REFUSED: ["DRAGOMAN_ERR_LOSS_REFUSED", null],
} as const satisfies Record<ErrorCode, readonly [string, number] | readonly [CommandErrorCode, null]>;

const CONNECTION_CODES = {
  unreachable: "A2ACLI_ERR_UNREACHABLE",
  timeout: "A2ACLI_ERR_TIMEOUT",
  aborted: "DRAGOMAN_ERR_INTERRUPTED",
  "bad-card": "A2ACLI_ERR_CARD_INVALID",
  "no-interface": "DRAGOMAN_ERR_NO_INTERFACE",
  "broken-stream": "A2ACLI_ERR_UNREACHABLE",
} as const satisfies Record<ConnectionErrorCode, CommandErrorCode>;

const LOGIN_CODES = {
  refused: "A2ACLI_ERR_AUTH_FAILED",
  unavailable: "A2ACLI_ERR_UNREACHABLE",
  untrusted: "A2ACLI_ERR_AUTH_FAILED",
  unsupported: "A2ACLI_ERR_AUTH_FAILED",
  "unknown-scheme": "A2ACLI_ERR_USAGE",
  incomplete: "A2ACLI_ERR_CREDENTIALS_MISSING",
  aborted: "DRAGOMAN_ERR_INTERRUPTED",
} as const satisfies Record<LoginErrorCode, CommandErrorCode>;

const STORE_HINTS = {
  "newer-schema": "The store was written by a newer dragoman. Install that version, or point --store elsewhere.",
  "older-schema": "Run: dragoman store migrate",
  "in-use":
    "Stop the process that uses the store, if there is one; else name another store, or another schema (?schema= of a postgres:// URL).",
  "not-a-database": "It is something else. Check --store; ?schema= of a postgres:// URL names another schema.",
  unavailable: "Check the address and whether the driver is installed; dragoman doctor shows more.",
  unreachable: "Check that PostgreSQL runs there and that this machine may connect to it.",
  login: "Check the user and the password in the store's URL, and pg_hba.conf of the server.",
  full: "Free some space on the disk.",
  "read-only": "Make the store writable, or point --store elsewhere.",
  damaged: "dragoman doctor --deep names what is damaged; restore the store from a backup.",
  io: "Check the disk and the permissions of the file, or the log of PostgreSQL.",
} as const satisfies Record<StoreErrorCode, string>;

const HINTS: Partial<Record<ErrorCode, string>> = {
  TASK_NOT_FOUND: "Check the task id, and that the caller owns the task. --debug shows the agent's answer.",
  TASK_NOT_CANCELABLE: "The task has already ended; task get shows how.",
  VERSION_NOT_SUPPORTED: "card get lists the versions that the agent supports; choose one with --a2a-version.",
  UNSUPPORTED_OPERATION:
    "The task may have ended, or the agent does not support this; check with task get and card get. --debug shows the agent's answer.",
  PERMISSION_DENIED: "These credentials do not allow it. Use others, or log in with more scopes: auth login --scopes.",
  RESOURCE_EXHAUSTED: "Too many requests or too much data; try again later.",
  PUSH_NOTIFICATION_NOT_SUPPORTED: "task subscribe and task get --wait follow a task without a webhook.",
  EXTENSION_SUPPORT_REQUIRED:
    "card get lists the extensions that the agent requires; --svc-param A2A-Extensions:<uri> declares one.",
};

const PROTOCOL_HINT = "--debug shows the request and the agent's answer.";

/** Errors of modules that are loaded only when needed, by their names. */
const CODES_BY_NAME: Readonly<Record<string, readonly [code: CommandErrorCode, hint: string | null]>> = {
  ConfigError: ["DRAGOMAN_ERR_CONFIG", "dragoman config show <file> prints what a valid file means."],
  AgentModuleError: ["DRAGOMAN_ERR_AGENT_MODULE", "dragoman doctor checks every agent of a configuration."],
  KeyError: ["DRAGOMAN_ERR_KEY", null],
  MissingPackageError: ["DRAGOMAN_ERR_MISSING_PACKAGE", "dragoman channels list shows what is installed."],
};

export function toFailure(error: unknown): Failure {
  if (!(error instanceof Error)) return failure("A2ACLI_ERR_INTERNAL", String(error));
  const { message } = error;
  if (error instanceof CommandError) return failure(error.code, message, error.hint);
  if (ProtocolError.is(error)) {
    const [code, a2aCode] = PROTOCOL_CODES[error.code];
    const wait = error.retryAfter === undefined ? "" : ` The agent asks to wait ${error.retryAfter} s.`;
    return failure(code, `${message}${wait}`, HINTS[error.code] ?? PROTOCOL_HINT, a2aCode);
  }
  if (ConnectionError.is(error)) {
    return failure(CONNECTION_CODES[error.code], message, connectionHint(error));
  }
  if (error instanceof LoginError) return failure(LOGIN_CODES[error.code], message);
  if (error instanceof StoreError) {
    const code = error.code.toUpperCase().replaceAll("-", "_");
    return failure(`DRAGOMAN_ERR_STORE_${code}`, message, STORE_HINTS[error.code]);
  }
  if (hasErrorCode(error, "EADDRINUSE")) return portInUse(error);
  const [code, hint] = CODES_BY_NAME[error.name] ?? ["A2ACLI_ERR_INTERNAL", null];
  return failure(code, message, hint);
}

function connectionHint({ code, message }: ConnectionError): string | null {
  if (code === "timeout") return "Allow more time with --timeout, or use --async and follow the task.";
  if (code === "unreachable" && message.startsWith("TLS certificate refused"))
    return "--ca-cert FILE trusts the authority that issued it; --insecure accepts any, for development only.";
  return null;
}

function failure(code: string, message: string, hint: string | null = null, a2aCode: number | null = null): Failure {
  const exits: Readonly<Record<string, ExitCode>> = {
    ...CLI_ERROR_EXITS,
    DRAGOMAN_ERR_INTERRUPTED: EXIT.interrupted,
    DRAGOMAN_ERR_STORE_UNREACHABLE: EXIT.unreachable,
    DRAGOMAN_ERR_STORE_LOGIN: EXIT.authentication,
  };
  return { code, message, hint, a2aCode, exit: exits[code] ?? EXIT.failure };
}

function portInUse(error: Error): Failure {
  const port = "port" in error && typeof error.port === "number" ? `Port ${error.port}` : "The port";
  const hint = error.message.startsWith("gRPC")
    ? "Choose another port with --grpc-port, or stop the process that has it. --grpc-port off serves no gRPC."
    : "Choose another port with --port, or stop the process that has it.";
  return failure("DRAGOMAN_ERR_PORT_IN_USE", `${port} is already in use.`, hint);
}

/** The JSON form of a failure: a2a-cli specification, appendix B. */
export function errorEnvelope({ code, message, hint, a2aCode }: Failure): { readonly error: Omit<Failure, "exit"> } {
  return { error: { code, message, hint, a2aCode } };
}
