import type { Log, LogFields } from "../../model/ports.ts";
import { safeText } from "../../model/safe-text.ts";

export const REDACTED = "[redacted]";

/** Names of secrets, in any spelling. Their values are never shown. */
const SECRET_NAME =
  /authori[sz]ation|cookie|token|api[-_]?key|access[-_]?key|passw(?:or)?d|passphrase|secret|credential|private[-_]?key|signing[-_]?key|assertion|client[-_]?key|session[-_]?id|^(?:ak|sk|pin|otp|jwt|auth|x-auth.*|code[-_]?verifier)$/i;
/** Cursors, counts and URLs whose names only resemble those of secrets. */
const NOT_SECRET =
  /^(?:(?:next[-_]?)?page[-_]?token|idempotency[-_]?key|max[-_]?tokens|tokens|token[-_]?(?:url|type|endpoint|count)|authori[sz]ation[-_]?(?:url|endpoint))$/i;

/** Bounds on what is logged. */
const MAX_DEPTH = 8;
const MAX_ITEMS = 100;
const MAX_TEXT_LENGTH = 16 * 1024;

const SCHEMES = /\b(bearer|basic|digest|negotiate|dpop|(?<!unexpected )token|apikey)([ \t]+|%20)[\w~+/.=-]{4,}/gi;
const JSON_WEB_TOKEN = /(?<![\w-])eyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*/g;
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;
const USER_INFO = /\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/?#@"']*@/gi;
/** Headers whose values may have several parts. */
const HEADER_LINE = /\b((?:set-)?cookie|(?:proxy-)?authorization)(["']?\s*[:=]\s*["']?)[^\r\n"']+/gi;
/** Parameters in URLs of logins and of signed requests. */
const QUERY_VALUE = /([?&](?:code|state|sig|signature|x-amz-[a-z-]+)=)[^&\s"'#]+/gi;
/** Name, separator and value, as in queries, JSON, headers and prose: `api_key=…`, `"token": "…"`, `password: …`. */
const NAMED_VALUE =
  /(["']?)(?<![\w-])([\w-]{0,64}(?:authori[sz]ation|cookie|token|key|passw(?:or)?d|passphrase|secret|credentials?|assertion|session[-_]?id)[\w-]{0,64})\1(\s*[:=]\s*|%3D)("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|[^\s&;,"'<>()[\]{}]+)/gi;
/** An id or a name: every form of a secret contains other characters. */
const PLAIN_WORD = /^[\w-]*$/;
/** A cheap check first: most texts do not match, and are not searched further. */
const MAY_HOLD_SECRET =
  /bearer|basic|digest|negotiate|dpop|token|key|passw|passphrase|secret|credential|assertion|cookie|authori|session|eyJ|@|PRIVATE|[?&]/i;

/** Redacts the secrets that can be recognised in a text. */
export function redactText(text: string, known: readonly SecretPattern[] = []): string {
  if (text.length <= MAX_TEXT_LENGTH) return replaceSecrets(text, known);
  // Truncated twice, so that a secret at the end is not cut before it can be recognised.
  return `${replaceSecrets(text.slice(0, 2 * MAX_TEXT_LENGTH), known).slice(0, MAX_TEXT_LENGTH)}…`;
}

/** A string if the secret cannot be part of another word, otherwise an expression that matches it as a whole word. */
type SecretPattern = string | RegExp;

/** A short secret may be part of an ordinary word: "change" is not redacted in "changed". */
function toSecretPattern(secret: string): SecretPattern {
  if (secret.length >= MIN_UNAMBIGUOUS_LENGTH) return secret;
  return new RegExp(`(?<![\\p{L}\\p{N}])${secret.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}(?![\\p{L}\\p{N}])`, "gu");
}

function replaceSecrets(text: string, known: readonly SecretPattern[]): string {
  let shown = text;
  for (const secret of known) shown = shown.replaceAll(secret, REDACTED);
  if (PLAIN_WORD.test(shown) || !MAY_HOLD_SECRET.test(shown)) return shown;
  return shown
    .replace(PRIVATE_KEY, REDACTED)
    .replace(USER_INFO, `$1${REDACTED}@`)
    .replace(JSON_WEB_TOKEN, REDACTED)
    .replace(SCHEMES, `$1$2${REDACTED}`)
    .replace(HEADER_LINE, `$1$2${REDACTED}`)
    .replace(QUERY_VALUE, `$1${REDACTED}`)
    .replace(NAMED_VALUE, (whole, quote: string, name: string, sign: string, value: string) => {
      if (!isSecretName(name) || value === REDACTED) return whole;
      const mark = value.startsWith('"') ? '"' : value.startsWith("'") ? "'" : "";
      return `${quote}${name}${quote}${sign}${mark}${REDACTED}${mark}`;
    });
}

export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name) && !NOT_SECRET.test(name);
}

/**
 * Copies values without secrets, by name in objects, by form within strings, and without what controls a terminal.
 * Errors become plain objects, causes included.
 */
export class Redactor {
  /** Longest first, so that a secret that contains another is redacted as a whole. */
  readonly #known: readonly SecretPattern[];
  readonly #names = new Map<string, CachedName>();

  /** `known` secrets are redacted wherever they occur; very short ones are skipped, as they may be ordinary words. */
  constructor(known: readonly string[] = []) {
    this.#known = known
      .filter((secret) => secret.length >= MIN_SECRET_LENGTH)
      .sort((a, b) => b.length - a.length)
      .map(toSecretPattern);
  }

  /** A log is read in terminals. */
  text(text: string): string {
    return safeText(redactText(text, this.#known));
  }

  fields(fields: LogFields): Record<string, unknown> {
    const seen = new Set<object>([fields]);
    return this.#members(Object.entries(fields), seen, 0);
  }

  #value(value: unknown, seen: Set<object>, depth: number): unknown {
    if (typeof value === "string") return this.text(value);
    if (typeof value === "bigint") return String(value);
    if (typeof value === "function" || typeof value === "symbol") return `[${typeof value}]`;
    if (typeof value !== "object" || value === null) return value;
    if (seen.has(value)) return "[circular]";
    if (depth >= MAX_DEPTH) return "[deep]";
    seen.add(value);
    const copy = this.#object(value, seen, depth);
    seen.delete(value);
    return copy;
  }

  #object(value: object, seen: Set<object>, depth: number): unknown {
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "[no date]" : value.toISOString();
    if (value instanceof URL) return this.text(value.href);
    if (value instanceof Map) return this.#members(value.entries(), seen, depth);
    if (Array.isArray(value) || value instanceof Set) return this.#items([...value], seen, depth);
    if (value instanceof Error) return this.#error(value, seen, depth);
    if (hasPairs(value)) return this.#members([...value], seen, depth);
    return this.#members(entriesOf(value), seen, depth);
  }

  #items(items: readonly unknown[], seen: Set<object>, depth: number, mayHavePairs = true): unknown[] {
    const shown = items.slice(0, MAX_ITEMS).map((item, at) => {
      // `["authorization", "…"]` and Node's raw headers: a value follows its name.
      const before = items[at - 1];
      const isNamed = mayHavePairs && typeof before === "string" && isHeaderName(before);
      if (isNamed && typeof item === "string") return REDACTED;
      return this.#value(item, seen, depth + 1);
    });
    if (items.length > MAX_ITEMS) shown.push(`[${items.length - MAX_ITEMS} more]`);
    return shown;
  }

  #members(entries: Iterable<readonly [unknown, unknown]>, seen: Set<object>, depth: number): Record<string, unknown> {
    const shown: Record<string, unknown> = {};
    let count = 0;
    for (const [key, value] of entries) {
      if (count++ >= MAX_ITEMS) break;
      const { name, secret } = this.#nameOf(String(key));
      const hidden = secret && value !== undefined && value !== null && typeof value !== "boolean";
      const copy = hidden ? REDACTED : this.#member(name, value, seen, depth);
      if (name === "__proto__") Object.defineProperty(shown, name, { value: copy, enumerable: true });
      else shown[name] = copy;
    }
    return shown;
  }

  #member(name: string, value: unknown, seen: Set<object>, depth: number): unknown {
    if (depth === 0 && name === AGENTS && Array.isArray(value)) return this.#items(value, seen, depth + 1, false);
    return this.#value(value, seen, depth + 1);
  }

  /** Cached: log lines repeat the same names. */
  #nameOf(key: string): CachedName {
    let known = this.#names.get(key);
    if (known === undefined) {
      known = { name: this.text(key), secret: isSecretName(key) };
      if (this.#names.size < MAX_CACHED_NAMES) this.#names.set(key, known);
    }
    return known;
  }

  #error(error: Error, seen: Set<object>, depth: number): Record<string, unknown> {
    const { name, message, stack, cause } = error;
    return {
      ...this.#members(
        entriesOf(error).filter(([key]) => !ERROR_MEMBERS.has(key)),
        seen,
        depth,
      ),
      type: error.constructor?.name ?? name,
      message: this.text(String(message)),
      stack: this.text(String(stack)),
      ...(cause === undefined ? undefined : { cause: this.#value(cause, seen, depth + 1) }),
      ...(error instanceof AggregateError ? { errors: this.#items(error.errors, seen, depth) } : undefined),
    };
  }
}

interface CachedName {
  /** The name with secrets redacted. */
  readonly name: string;
  readonly secret: boolean;
}

const MAX_CACHED_NAMES = 1_000;
const MIN_SECRET_LENGTH = 4;
const MIN_UNAMBIGUOUS_LENGTH = 16;
const ERROR_MEMBERS: ReadonlySet<string> = new Set(["name", "message", "stack", "cause", "errors"]);
/** Field with the names of agents, where what follows an agent with a name like `auth` is not its value. */
const AGENTS = "agents";
const HEADER_NAME = /^[A-Za-z][\w-]*$/;

function isHeaderName(text: string): boolean {
  return HEADER_NAME.test(text) && isSecretName(text);
}

/**
 * Name-value pairs, as in HTTP headers. Plain objects are not compared with `Headers`: the first use of it loads all of
 * Node's fetch, which costs more than the rest of the line.
 */
function hasPairs(value: object): value is Headers | URLSearchParams {
  if (Object.getPrototypeOf(value) === Object.prototype) return false;
  return value instanceof URLSearchParams || value instanceof Headers;
}

/** Getters may throw. */
function entriesOf(value: object): [string, unknown][] {
  return Object.keys(value).map((key) => {
    try {
      return [key, Reflect.get(value, key)];
    } catch {
      return [key, "[unreadable]"];
    }
  });
}

/** Logs that already redact. */
const REDACTING = new WeakSet<Log>();

/** A log that passes everything to one function, which redacts. */
export function createRedactingLog(write: (level: keyof Log, fields: LogFields, message: string) => void): Log {
  const at =
    (level: keyof Log) =>
    (fields: LogFields, message: string): void =>
      write(level, fields, message);
  const log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  REDACTING.add(log);
  return log;
}

/** Wraps a log so that no secret reaches it. */
export function withRedaction(log: Log, redactor: Redactor = new Redactor()): Log {
  if (REDACTING.has(log)) return log;
  return createRedactingLog((level, fields, message) => log[level](redactor.fields(fields), redactor.text(message)));
}
