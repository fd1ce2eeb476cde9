import type { AdmittedHttpServing, ServeContext } from "../../../core/dialects/contract.ts";
import { toPublicError } from "../../../core/dialects/shared/errors.ts";
import type { Caller } from "../../../core/model/caller.ts";
import { invalidParams, isTemporary, ProtocolError } from "../../../core/model/errors.ts";
import type { JsonObject } from "../../../core/model/json.ts";
import type { Clock, Log, Meter } from "../../../core/model/ports.ts";
import type { Admission } from "../../../core/server/access/admission.ts";
import { type AuditLog, toCallRecord } from "../../../core/server/audit/audit-log.ts";
import {
  type ExchangeReply,
  type ExchangeRequest,
  type FullReply,
  jsonReply,
  PRIVATE_NO_STORE,
} from "../../../core/wire/exchange.ts";
import { decodeUtf8, JsonParseError, parseJson } from "../../../core/wire/parse-json.ts";
import { toCatalogEntry, toDetails } from "../catalog.ts";
import { type FederatedSearch, VIA_HEADER } from "../federate.ts";
import { parseExploreRequest, parseListRequest, parseRegistration, parseSearchRequest } from "../query.ts";
import type { Registry } from "../registry.ts";
import { ardErrorReply, ardMethodNotAllowed } from "./errors.ts";
import { watchFrames } from "./watch-frames.ts";

export interface RegistryRoutesOptions {
  readonly registry: Registry;
  readonly search: FederatedSearch;
  readonly admission: Admission;
  readonly audit: AuditLog | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  readonly keepAliveMs: number;
  /** Open watches of one owner. */
  readonly maxWatches: number;
  /** Base of the registry, as callers reach it. */
  readonly source: () => string;
}

export const REGISTRY_PATH = "registry";
/** Larger requests are refused: a card is the most that one has to carry. */
const MAX_BODY_BYTES = 512 * 1024;

type Handler = (exchange: ExchangeRequest, context: ServeContext, id: string) => Promise<ExchangeReply>;

/** The paths below `/registry`, in the shapes of ARD. */
export function createRegistryRoutes(options: RegistryRoutesOptions): AdmittedHttpServing {
  const { registry, meter, source } = options;
  const watches = new Map<string, number>();

  const routes: readonly { readonly path: RegExp; readonly methods: Readonly<Record<string, Handler>> }[] = [
    {
      path: /^\/search\/?$/,
      methods: {
        POST: async (exchange, { caller, limits }) => {
          const body = readQuery(exchange, limits);
          const request = parseSearchRequest(body);
          meter.count("registry_searches");
          const answer = await options.search(caller.owner, request, body as JsonObject, readVia(exchange));
          return json(200, answer);
        },
      },
    },
    {
      path: /^\/explore\/?$/,
      methods: {
        POST: async (exchange, { caller, limits }) => {
          const request = parseExploreRequest(readQuery(exchange, limits));
          meter.count("registry_searches");
          return json(200, { resultType: "facets", facets: await registry.explore(caller.owner, request) });
        },
      },
    },
    {
      path: /^\/agents\/?$/,
      methods: {
        GET: async ({ query }, { caller }) => {
          const { entries, total, pageToken } = await registry.list(caller.owner, parseListRequest(query));
          return json(200, { items: entries.map(toCatalogEntry), total, pageToken });
        },
        POST: (exchange, { caller, limits }) =>
          audited("registry-register", caller, async () => {
            const registration = parseRegistration(readBody(exchange, limits));
            const { entry, created } = await registry.register(caller.owner, registration);
            const location = `${source()}/agents/${encodeURIComponent(entry.id)}`;
            return json(created ? 201 : 200, toDetails(entry), { location });
          }),
      },
    },
    {
      path: /^\/agents\/([^/]+)$/,
      methods: {
        GET: async (_, { caller }, id) => json(200, toDetails(await registry.get(caller.owner, id))),
        DELETE: (_, { caller }, id) =>
          audited("registry-remove", caller, async () => {
            await registry.remove(caller.owner, id);
            return { status: 204, headers: { "cache-control": PRIVATE_NO_STORE }, body: undefined };
          }),
      },
    },
    {
      path: /^\/agents\/([^/]+)\/heartbeat$/,
      methods: {
        POST: async (_, { caller }, id) => {
          const expiresAt = await registry.heartbeat(caller.owner, id);
          return json(200, { id, expiresAt: expiresAt === undefined ? undefined : new Date(expiresAt).toISOString() });
        },
      },
    },
    { path: /^\/watch$/, methods: { GET: watch } },
  ];

  async function watch(exchange: ExchangeRequest, { caller }: ServeContext): Promise<ExchangeReply> {
    const { clock, keepAliveMs, maxWatches } = options;
    const open = watches.get(caller.owner) ?? 0;
    if (open >= maxWatches)
      throw new ProtocolError("RESOURCE_EXHAUSTED", "You have too many open streams.", { retryAfter: 1 });
    const { changes, from, toVisible, reset } = await registry.watch(caller.owner, readLastEventId(exchange));
    watches.set(caller.owner, (watches.get(caller.owner) ?? 0) + 1);
    const onClose = () => {
      const left = (watches.get(caller.owner) ?? 1) - 1;
      if (left === 0) watches.delete(caller.owner);
      else watches.set(caller.owner, left);
    };
    const { expires } = caller;
    return {
      status: 200,
      headers: {
        "content-type": "text/event-stream",
        "cache-control": `no-cache, ${PRIVATE_NO_STORE}`,
        "x-accel-buffering": "no",
      },
      frames: watchFrames(changes, { clock, keepAliveMs, from, reset, toVisible, expires, onClose }),
    };
  }

  async function audited(operation: string, caller: Caller, run: () => Promise<FullReply>): Promise<FullReply> {
    const { audit } = options;
    if (audit === undefined) return run();
    audit.assertWritable();
    const began = audit.now();
    const record = (result: string) =>
      audit.record(toCallRecord({ caller, dialect: REGISTRY_PATH, operation, result, duration: audit.now() - began }));
    try {
      const reply = await run();
      record("OK");
      return reply;
    } catch (error) {
      record(ProtocolError.is(error) ? error.code : "INTERNAL_ERROR");
      throw error;
    }
  }

  async function dispatch(exchange: ExchangeRequest, context: ServeContext): Promise<ExchangeReply> {
    for (const { path, methods } of routes) {
      const match = path.exec(exchange.path);
      if (match === null) continue;
      const handler = methods[exchange.method === "HEAD" ? "GET" : exchange.method];
      if (handler === undefined) return ardMethodNotAllowed(Object.keys(methods).join(", "));
      return handler(exchange, context, decodeId(match[1] ?? ""));
    }
    throw new ProtocolError("METHOD_NOT_FOUND", "There is nothing at this path.");
  }

  return {
    version: "",
    prefix: REGISTRY_PATH,
    async handle(exchange, context) {
      const { admission, log } = options;
      try {
        admission.startRequest(context.caller);
      } catch (error) {
        if (ProtocolError.is(error)) return ardErrorReply(error);
        throw error;
      }
      try {
        return await dispatch(exchange, context);
      } catch (error) {
        if (ProtocolError.is(error)) return ardErrorReply(error);
        if (isTemporary(error)) return ardErrorReply(toPublicError(error));
        log.error({ err: error, path: exchange.path }, "A request to the registry failed unexpectedly.");
        return ardErrorReply(new ProtocolError("INTERNAL_ERROR", "Something went wrong on our side."));
      } finally {
        admission.endRequest(context.caller);
      }
    },
    refuse: (error, _, status) => ardErrorReply(error, status),
  };
}

function json(status: number, body: object, headers?: Readonly<Record<string, string>>): FullReply {
  return jsonReply(status, JSON.stringify(body), headers);
}

function readBody({ body }: ExchangeRequest, limits: ServeContext["limits"]): unknown {
  if (body.length > MAX_BODY_BYTES) throw invalidParams("body", `is larger than ${MAX_BODY_BYTES / 1024} KiB`);
  try {
    return parseJson(decodeUtf8(body), limits);
  } catch (error) {
    if (error instanceof JsonParseError) throw invalidParams("body", error.message);
    throw error;
  }
}

/** A key that the parser leaves out is refused like every other unknown one: a condition must not get lost. */
function readQuery(exchange: ExchangeRequest, limits: ServeContext["limits"]): unknown {
  const body = readBody(exchange, limits);
  JSON.parse(decodeUtf8(exchange.body), (key, value: unknown) => {
    if (key === "__proto__") throw invalidParams(key, "is not known");
    return value;
  });
  return body;
}

function decodeId(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The header, or a parameter for those that cannot set one. */
function readLastEventId({ headers, query }: ExchangeRequest): number | undefined {
  const text = headers["last-event-id"] ?? new URLSearchParams(query).get("lastEventId") ?? undefined;
  if (text === undefined || text === "") return undefined;
  if (!/^\d{1,15}$/.test(text)) throw invalidParams("Last-Event-ID", "is not a number that this registry has sent");
  return Number(text);
}

const MAX_VIA = 16;

function readVia({ headers }: ExchangeRequest): readonly string[] {
  const given = headers[VIA_HEADER];
  if (given === undefined) return [];
  return given
    .split(",")
    .map((one) => one.trim())
    .filter((one) => /^[\w-]{1,64}$/.test(one))
    .slice(0, MAX_VIA);
}
