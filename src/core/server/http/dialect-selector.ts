import type { AgentService, Dialect, JsonRpcServing } from "../../dialects/contract.ts";
import { isJson, mediaTypeOf, unsupportedContentType } from "../../dialects/shared/http/requests.ts";
import type { Caller } from "../../model/caller.ts";
import { type ErrorCode, ProtocolError } from "../../model/errors.ts";
import type { ExchangeRequest, RequestHead } from "../../wire/exchange.ts";
import {
  INVALID_PARAMS,
  INVALID_REQUEST,
  type JsonRpcParseFailure,
  type JsonRpcRequest,
  PARSE_ERROR,
} from "../../wire/json-rpc.ts";

/** The same request with its path relative to the prefix of its binding. */
export class PrefixedHead<Request extends RequestHead = RequestHead> implements RequestHead {
  readonly path: string;
  protected readonly outer: Request;

  constructor(outer: Request, path: string) {
    this.outer = outer;
    this.path = path;
  }

  get method() {
    return this.outer.method;
  }
  get query() {
    return this.outer.query;
  }
  get headers() {
    return this.outer.headers;
  }
  get remoteAddress() {
    return this.outer.remoteAddress;
  }
  get certificate() {
    return this.outer.certificate;
  }
}

/** The same for an admitted caller. */
export class PrefixedRequest extends PrefixedHead<ExchangeRequest> implements ExchangeRequest {
  get body() {
    return this.outer.body;
  }
}

const VERSION_PATTERN = /^(\d+\.\d+)(?:\.\d+)?$/;

/** `Major.Minor` version that the caller requests, by header or query; undefined if none. The patch part is ignored. */
export function versionOf(exchange: Pick<RequestHead, "headers" | "query">): string | undefined {
  const header = exchange.headers["a2a-version"]?.trim();
  if (header === "1.0") return header;
  const named = header || (exchange.query === "" ? "" : (new URLSearchParams(exchange.query).get("A2A-Version") ?? ""));
  if (named === "") return undefined;
  return VERSION_PATTERN.exec(named)?.[1] ?? named.slice(0, 32);
}

/** A dialect at the URL that all JSON-RPC dialects share. */
export interface JsonRpcDialect {
  readonly dialect: string;
  readonly serving: JsonRpcServing;
}

/** Several dialects may share a method; which of them answers depends on the task. */
type DialectsByMethod = ReadonlyMap<string, readonly [JsonRpcDialect, ...JsonRpcDialect[]]>;

/** Selects the dialect at the shared URL: by requested version, else by method, else by the dialect of the task. */
export class DialectSelector {
  /** Used if the dialect of the caller is unknown. */
  readonly #defaultDialect: JsonRpcDialect;
  readonly #byVersion = new Map<string, JsonRpcDialect>();
  readonly #unversioned: DialectsByMethod;
  readonly #firstUnversioned: JsonRpcDialect;
  readonly #versioned: DialectsByMethod;

  constructor(dialects: readonly Dialect[]) {
    const candidates = dialects.flatMap(({ name, serving: { jsonRpc } }): JsonRpcDialect[] =>
      jsonRpc === undefined ? [] : [{ dialect: name, serving: jsonRpc }],
    );
    const [first] = candidates;
    if (first === undefined) throw new Error("No dialect serves JSON-RPC.");
    this.#defaultDialect = first;
    for (const candidate of candidates)
      for (const version of candidate.serving.versions) this.#byVersion.set(version, candidate);
    const unversioned = candidates.filter(({ serving }) => serving.unversioned);
    this.#unversioned = groupByMethod(unversioned);
    this.#firstUnversioned = unversioned[0] ?? first;
    this.#versioned = groupByMethod(candidates.filter(({ serving }) => !serving.unversioned));
  }

  /** For errors before a method is known, and for callers that are refused: their requests are not parsed. */
  fallback(version: string | undefined): JsonRpcDialect {
    return version === undefined ? this.#firstUnversioned : (this.#byVersion.get(version) ?? this.#defaultDialect);
  }

  /** VERSION_NOT_SUPPORTED for a version that no dialect supports; `fallback` encodes it. */
  checkVersion(version: string): ProtocolError | undefined {
    if (this.#byVersion.has(version)) return undefined;
    const supported = [...this.#byVersion.keys()].join(", ");
    return new ProtocolError("VERSION_NOT_SUPPORTED", `A2A ${version} is not supported; supported are: ${supported}.`, {
      metadata: { requestedVersion: version, supportedVersions: supported },
    });
  }

  /** For a caller that names no version. A method that only one version has needs no other mark. */
  async selectByTask(request: JsonRpcRequest, service: AgentService, caller: Caller): Promise<JsonRpcDialect> {
    const candidates = this.#unversioned.get(request.method) ?? this.#versioned.get(request.method);
    if (candidates === undefined) return this.#firstUnversioned;
    const [usual, ...others] = candidates;
    const taskId = others.length === 0 ? undefined : usual.serving.taskIdOf?.(request);
    if (taskId === undefined) return usual;
    const origin = await service.originOf(taskId, caller);
    return others.find(({ dialect }) => dialect === origin) ?? usual;
  }
}

const PARSE_ERROR_CODES = {
  [PARSE_ERROR]: "PARSE_ERROR",
  [INVALID_REQUEST]: "INVALID_REQUEST",
  [INVALID_PARAMS]: "INVALID_PARAMS",
} as const satisfies Record<JsonRpcParseFailure["code"], ErrorCode>;

/** A media type other than JSON is reported as such rather than as invalid JSON. */
export function toParseError({ headers }: RequestHead, { code, message }: JsonRpcParseFailure): ProtocolError {
  const mediaType = mediaTypeOf(headers);
  if (mediaType !== undefined && !isJson(mediaType)) return unsupportedContentType(mediaType);
  return new ProtocolError(PARSE_ERROR_CODES[code], message);
}

function groupByMethod(candidates: readonly JsonRpcDialect[]): DialectsByMethod {
  const found = new Map<string, [JsonRpcDialect, ...JsonRpcDialect[]]>();
  for (const candidate of candidates) {
    for (const method of candidate.serving.methods) {
      const group = found.get(method);
      if (group === undefined) found.set(method, [candidate]);
      else group.push(candidate);
    }
  }
  return found;
}
