/** Requests of an older dialect that must be refused, every single one, and leave nothing behind. */
import fc, { type Arbitrary } from "fast-check";
import { anyOf } from "./batches.ts";
import type { Params, RequestDialect } from "./dialect-requests.ts";
import { envelope, type HostileRequest, JSON_TYPE, type Known } from "./hostile-request.ts";
import { brokenBytes, oddId } from "./refused-requests.ts";

/** The same params, said in every way there is. */
export function encodeAllWays(tongue: RequestDialect, label: string, paramsJson: string): HostileRequest[] {
  return tongue.bodies(paramsJson).flatMap((body) => tongue.say(label, body));
}

const said = (tongue: RequestDialect, label: string, params: Params) =>
  encodeAllWays(tongue, label, JSON.stringify(params));

function replaced(params: Params, path: string, value: unknown): Params {
  const [first = "", second] = path.split(".");
  if (second === undefined) return { ...params, [first]: value };
  return { ...params, [first]: { ...(params[first] as Params), [second]: value } };
}

function wrongTypes(tongue: RequestDialect): Arbitrary<HostileRequest> {
  return anyOf(
    fc
      .tuple(tongue.valid, tongue.wrong)
      .map(([params, [path, value]]) => said(tongue, `wrong type of ${path}`, replaced(params, path, value))),
  );
}

function missing(tongue: RequestDialect): Arbitrary<HostileRequest> {
  return anyOf(
    fc
      .tuple(tongue.valid, fc.constantFrom(...tongue.required), fc.constantFrom<unknown>(undefined, null))
      .map(([params, path, value]) => said(tongue, `no ${path}`, replaced(params, path, value))),
  );
}

function malformed(tongue: RequestDialect): Arbitrary<HostileRequest> {
  return anyOf(brokenBytes.map((bytes) => tongue.say("malformed body", bytes)));
}

function hidden(tongue: RequestDialect): Arbitrary<HostileRequest> {
  return anyOf(
    fc
      .tuple(tongue.valid, fc.constantFrom("__proto__", "constructor", "prototype", "Message", "params"))
      .map(([params, key]) =>
        encodeAllWays(tongue, `all under ${key}`, `{${JSON.stringify(key)}:${JSON.stringify(params)}}`),
      ),
  );
}

function deep(tongue: RequestDialect): Arbitrary<HostileRequest> {
  return anyOf(
    fc.tuple(tongue.valid, fc.integer({ min: 65, max: 3_000 }), fc.boolean()).map(([params, levels, lists]) => {
      const [open, close] = lists ? ["[", "]"] : ['{"a":', "}"];
      const nested = open.repeat(levels) + (lists ? "" : "1") + close.repeat(levels);
      const text = JSON.stringify({ ...params, metadata: { deep: "HERE" } }).replace('"HERE"', nested);
      return encodeAllWays(tongue, "deep nesting", text);
    }),
  );
}

function crowded(tongue: RequestDialect): Arbitrary<HostileRequest> {
  return anyOf(
    fc.tuple(tongue.valid, fc.integer({ min: 1_001, max: 3_000 })).map(([params, count]) => {
      const message = params.message as Params;
      const member = "content" in message ? "content" : "parts";
      const part = (message[member] as unknown[])[0];
      return said(tongue, "thousands of parts", replaced(params, `message.${member}`, Array(count).fill(part)));
    }),
  );
}

function huge(tongue: RequestDialect): Arbitrary<HostileRequest> {
  return anyOf(
    fc.tuple(fc.integer({ min: 270_000, max: 600_000 }), fc.boolean()).map(([size, chunked]) =>
      tongue.say("huge body", Buffer.alloc(size, 0x20)).map((request) => ({
        ...request,
        raw: { ...request.raw, chunked },
      })),
    ),
  );
}

function refusedHeaders(tongue: RequestDialect): Arbitrary<HostileRequest> {
  const headers = fc.constantFrom<Readonly<Record<string, string>>>(
    { "content-type": "text/plain" },
    { "content-type": "application/x-www-form-urlencoded" },
    { "content-type": "json" },
    { "content-type": ";;;" },
    { "content-encoding": "gzip" },
    { "content-encoding": "\u00ff" },
  );
  return anyOf(
    fc.tuple(tongue.valid, headers).map(([params, more]) =>
      said(tongue, "refused headers", params).map((request) => ({
        ...request,
        raw: { ...request.raw, headers: { ...JSON_TYPE, ...more } },
      })),
    ),
  );
}

/** Over JSON-RPC only: what is no call, and calls of what is not there. */
function unknownCalls(tongue: RequestDialect): Arbitrary<HostileRequest> {
  const methods = fc.oneof(
    fc.string().filter((name) => !name.includes("/")),
    fc.constantFrom("__proto__", "constructor", "toString", "message/SEND", "tasks/list", "message/send ", "rpc.on"),
    fc.constantFrom("sendMessage", "SendTask", "DeleteTask"),
  );
  const method = tongue.lane === "0.1 JSON-RPC" ? "tasks/send" : "message/send";
  return fc.tuple(tongue.valid, methods, fc.nat(8)).map(([params, name, kind]) => {
    const bodies: readonly unknown[] = [
      { jsonrpc: "1.0", id: 7, method, params },
      { jsonrpc: "2.0", id: { a: 1 }, method, params },
      { jsonrpc: "2.0", method, params: {} },
      { jsonrpc: "2.0", id: 7, method: 5, params },
      { jsonrpc: "2.0", id: 7, method, params: "x" },
      { jsonrpc: "2.0", id: 7, method, params: [params] },
      [{ jsonrpc: "2.0", id: 7, method, params }],
    ];
    const body = kind < bodies.length ? JSON.stringify(bodies[kind]) : envelope(name, JSON.stringify(params));
    return tongue.say("no call", body)[0] as HostileRequest;
  });
}

/** Over plain HTTP only: paths and methods that are not there. */
function unknownPlaces(tongue: RequestDialect): Arbitrary<HostileRequest> {
  const base = tongue.lane === "tasks-rest" ? "/tasks" : "/rest/v1";
  const paths = ["", "/", "//", "/a/b/c", "/%", "/%E0%A4%A", "/tasks/%ff/cancel", "/x/y/", "/__proto__/constructor"];
  return fc
    .tuple(fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE", "PROPFIND"), fc.constantFrom(...paths))
    .map(([method, path]): HostileRequest => {
      const body = method === "GET" || method === "DELETE" ? undefined : "{}";
      const raw = { method, path: `${base}${path}`, headers: JSON_TYPE, ...(body === undefined ? {} : { body }) };
      return { label: "no such place", lane: tongue.lane, raw };
    });
}

function aboutTasks(tongue: RequestDialect, known: () => Known): Arbitrary<HostileRequest> {
  return anyOf(
    fc.tuple(tongue.valid, oddId, fc.string({ minLength: 1 })).map(([params, id, contextId]) => {
      const { ended, waiting } = known();
      const unknown = tongue.makesTasks ? [] : said(tongue, "to an unknown task", tongue.toTask(params, id));
      return [
        ...unknown,
        ...said(tongue, "to an ended task", tongue.toTask(params, ended)),
        ...said(tongue, "mismatched context", tongue.toTask(params, waiting, contextId)),
        ...[id, ended].map((task) => ({ ...tongue.cancel(task), label: "cancel unknown or ended" })),
        { ...tongue.get(id), label: "get unknown" },
        { ...tongue.subscribe(id), label: "subscribe to unknown" },
        { ...tongue.subscribe(waiting, { "last-event-id": "x" }), label: "bad cursor" },
      ];
    }),
  );
}

export function refusedIn(tongue: RequestDialect, known: () => Known): Arbitrary<HostileRequest> {
  const overHttp = tongue.lane === "0.3 HTTP+JSON" || tongue.lane === "tasks-rest";
  return fc.oneof(
    { weight: 10, arbitrary: malformed(tongue) },
    { weight: 24, arbitrary: wrongTypes(tongue) },
    { weight: 6, arbitrary: missing(tongue) },
    { weight: 8, arbitrary: overHttp ? unknownPlaces(tongue) : unknownCalls(tongue) },
    { weight: 3, arbitrary: hidden(tongue) },
    { weight: 2, arbitrary: deep(tongue) },
    { weight: 1, arbitrary: crowded(tongue) },
    { weight: 1, arbitrary: huge(tongue) },
    { weight: 4, arbitrary: refusedHeaders(tongue) },
    { weight: 12, arbitrary: aboutTasks(tongue, known) },
  );
}
