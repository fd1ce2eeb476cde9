import { StoreError, type StoreErrorCode } from "../../../core/store/errors.ts";

/** What PostgreSQL answered an error with, also inside an error of the store; undefined: it answered nothing. */
export function sqlStateOf(error: unknown): string | undefined {
  const source = error instanceof StoreError ? error.cause : error;
  const code = source instanceof Error && "severity" in source && "code" in source ? source.code : undefined;
  return typeof code === "string" ? code : undefined;
}

/** Whether the statement may have been carried out all the same: its connection was lost before the answer. */
export function isUncertain(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === undefined || /^(08|57P|58|XX)/.test(state);
}

/** PgBouncer refuses settings that it does not know. */
export function isRefusedStartup(error: unknown): boolean {
  return sqlStateOf(error) === "08P01" && error instanceof Error && /startup parameter/.test(error.message);
}

interface Explanation {
  readonly code: StoreErrorCode;
  readonly sentence: (place: string) => string;
}

const LOGIN: Explanation = {
  code: "login",
  sentence: (place) => `PostgreSQL at ${place} does not accept the user or the password`,
};
const AWAY: Explanation = { code: "unreachable", sentence: (place) => `PostgreSQL at ${place} is not available` };
const TIMEOUT: Explanation = {
  code: "unreachable",
  sentence: (place) => `PostgreSQL at ${place} did not answer in time`,
};

const BY_SQLSTATE: Readonly<Record<string, Explanation>> = {
  "25006": { code: "read-only", sentence: (place) => `PostgreSQL at ${place} is read-only` },
  "28000": {
    code: "login",
    sentence: (place) =>
      `PostgreSQL at ${place} does not accept this user from here, or only with TLS (?sslmode=verify-full)`,
  },
  "28P01": LOGIN,
  "3D000": { code: "unavailable", sentence: (place) => `The database does not exist: ${place}` },
  "42501": { code: "login", sentence: (place) => `The user lacks a permission on PostgreSQL at ${place}` },
  "53100": { code: "full", sentence: (place) => `The disk of PostgreSQL at ${place} is full` },
  "53200": { code: "io", sentence: (place) => `PostgreSQL at ${place} has no memory left` },
  "53300": { code: "unreachable", sentence: (place) => `PostgreSQL at ${place} has no connection left` },
  "55P03": TIMEOUT,
  "57014": TIMEOUT,
  "58030": { code: "io", sentence: (place) => `The disk of PostgreSQL at ${place} reports an error` },
  XX001: { code: "damaged", sentence: (place) => `PostgreSQL at ${place} reports damaged data` },
  XX002: { code: "damaged", sentence: (place) => `PostgreSQL at ${place} reports a damaged index` },
};

const BY_NETWORK_CODE: Readonly<Record<string, (place: string) => string>> = {
  ECONNREFUSED: (place) => `Connection refused: PostgreSQL at ${place}`,
  ENOTFOUND: (place) => `The host does not exist: PostgreSQL at ${place}`,
  EAI_AGAIN: (place) => `The host name cannot be resolved: PostgreSQL at ${place}`,
  ENOENT: (place) => `PostgreSQL does not listen at ${place}`,
};

/** For the person who runs the server; `place` has no password in it, and neither has what PostgreSQL answers. */
export function toStoreError(error: unknown, place: string): StoreError {
  if (error instanceof StoreError) return error;
  const { code, sentence } = explain(error);
  const reason = error instanceof Error ? error.message : String(error);
  // The pool adds the connection with all its settings, which is not for logs.
  if (error instanceof Error) Reflect.deleteProperty(error, "client");
  return new StoreError(code, `${sentence(place)}: ${reason || "no reason given"}.`, { cause: error });
}

function explain(error: unknown): Explanation {
  const state = sqlStateOf(error);
  if (state !== undefined) return BY_SQLSTATE[state] ?? explainClass(state);
  if (!(error instanceof Error)) return AWAY;
  const network = "code" in error && typeof error.code === "string" ? BY_NETWORK_CODE[error.code] : undefined;
  if (network !== undefined) return { code: "unreachable", sentence: network };
  // The driver itself refuses to log in without a password where the server asks for one.
  if (/password must be a .*string/.test(error.message)) return LOGIN;
  return /timeout/i.test(error.message) ? TIMEOUT : AWAY;
}

function explainClass(state: string): Explanation {
  if (/^(08|57)/.test(state)) return AWAY;
  return { code: "io", sentence: (place) => `PostgreSQL at ${place} refused a statement (${state})` };
}
