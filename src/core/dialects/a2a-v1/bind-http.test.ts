import { describe, expect, it } from "vitest";
import { ERROR_CODES, ProtocolError, taskNotFound } from "../../model/errors.ts";
import type { ExchangeRequest } from "../../wire/exchange.ts";
import { batches, contextOf, exchangeOf, full, streamed, writesOf } from "../suite/serving.ts";
import { http } from "./bind-http.ts";
import { ERRORS } from "./errors.ts";
import { EXCHANGES, FRAMES, fakeService } from "./fixtures/serving.ts";

const MESSAGE = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "hi" }] };
const V1 = { "a2a-version": "1.0" };
const TASK = { id: "t1", contextId: "c1", status: { state: "TASK_STATE_WORKING" } };

function request(method: string, target: string, more: { body?: unknown; headers?: ExchangeRequest["headers"] } = {}) {
  const [path = "", query = ""] = target.split("?");
  const body =
    more.body === undefined
      ? Buffer.alloc(0)
      : Buffer.from(typeof more.body === "string" ? more.body : JSON.stringify(more.body));
  return exchangeOf({ method, path, query, body, headers: more.headers ?? V1 });
}

async function ask(exchange: ExchangeRequest, answer: () => unknown = () => TASK) {
  const service = fakeService(answer);
  const reply = full(await http.handle(exchange, contextOf(service)));
  const text = reply.body === undefined ? undefined : String(reply.body);
  return {
    status: reply.status,
    headers: reply.headers,
    body: text === undefined ? undefined : JSON.parse(text),
    asked: service.asked,
  };
}

describe("routes", () => {
  it("answers below rest", () => {
    expect(http.prefix).toBe("rest");
    expect(http.version).toBe("1.0");
  });

  it.each(EXCHANGES)(
    "[BIND-EQUIV-002, CORE-LIST-005, PUSH-CREATE-001] $name",
    async ({ params, http: at, operation, tenant, outcome, result }) => {
      const target = at.query === undefined ? at.path : `${at.path}?${at.query}`;
      const { status, headers, body, asked } = await ask(
        request(at.method, target, at.bodyIsParams ? { body: params } : {}),
        () => outcome,
      );
      expect(asked[0]?.operation).toEqual(operation);
      expect(asked[0]?.call.tenant).toBe(tenant ?? "");
      expect(status).toBe(at.status ?? 200);
      if (status === 204) {
        expect(body).toBeUndefined();
        return;
      }
      expect(headers).toEqual({ "content-type": "application/a2a+json", "cache-control": "private, no-store" });
      expect(body).toStrictEqual(result);
    },
  );

  it.each([
    ["/tasks/a%3Acancel", "a:cancel"],
    ["/tasks/a:b", "a:b"],
    ["/tasks/a%2Fb/", "a/b"],
    ["/tasks/tasks", "tasks"],
    ["/tasks/%E4%BD%A0", "你"],
  ])("reads the id out of GET %s", async (path, id) => {
    const { asked } = await ask(request("GET", path));
    expect(asked[0]?.operation).toEqual({ kind: "get", id });
  });

  it("finds a path that comes without its first slash", async () => {
    const { asked } = await ask(request("GET", "tasks/t1"));
    expect(asked[0]?.operation).toEqual({ kind: "get", id: "t1" });
  });

  it("takes the longest id before a verb", async () => {
    const { asked } = await ask(request("POST", "/tasks/a:subscribe:cancel"));
    expect(asked[0]?.operation).toEqual({ kind: "cancel", id: "a:subscribe" });
  });

  it("accepts an encoded colon where nothing else can be meant", async () => {
    const { asked } = await ask(request("POST", "/message%3Asend", { body: { message: MESSAGE } }), () => ({
      message: MESSAGE,
    }));
    expect(asked[0]?.operation.kind).toBe("send");
  });

  it.each(["GET", "POST"])("[STREAM-SUB-001] subscribes with %s", async (method) => {
    const service = fakeService(() => batches([FRAMES]));
    const reply = await http.handle(
      request(method, "/acme/tasks/t1:subscribe", { headers: { ...V1, "last-event-id": "2" } }),
      contextOf(service),
    );
    expect(await writesOf(reply)).toHaveLength(1);
    expect(service.asked[0]).toMatchObject({
      operation: { kind: "subscribe", id: "t1", after: 2 },
      call: { tenant: "acme" },
    });
  });

  it.each([
    ["PUT", "/message:send", "POST"],
    ["GET", "/message:stream", "POST"],
    ["POST", "/tasks", "GET, HEAD"],
    ["GET", "/tasks/t1:cancel", "POST"],
    ["DELETE", "/tasks/t1:subscribe", "GET, HEAD, POST"],
    ["PATCH", "/tasks/t1", "GET, HEAD"],
    ["DELETE", "/tasks/t1/pushNotificationConfigs", "GET, HEAD, POST"],
    ["POST", "/tasks/t1/pushNotificationConfigs/p1", "GET, HEAD, DELETE"],
    ["POST", "/acme/extendedAgentCard", "GET, HEAD"],
  ])("refuses %s %s and says what is allowed", async (method, path, allow) => {
    const { status, headers, body } = await ask(request(method, path));
    expect(status).toBe(405);
    expect(headers.allow).toBe(allow);
    expect(body.error.code).toBe(405);
  });

  it.each(["/", "", "/nothing", "/a/b/tasks", "/tasks/t1/other", "/message:other"])(
    "knows nothing at %s",
    async (path) => {
      const { status, body } = await ask(request("GET", path));
      expect(status).toBe(404);
      expect(body.error.details[0].reason).toBe("METHOD_NOT_FOUND");
    },
  );

  it("refuses a path that is not properly encoded", async () => {
    expect((await ask(request("GET", "/tasks/%E4%BD"))).status).toBe(400);
  });

  it("answers HEAD like GET without the body", async () => {
    const { status, headers, body, asked } = await ask(request("HEAD", "/tasks/t1"));
    expect([status, headers["content-type"], body]).toEqual([200, "application/a2a+json", undefined]);
    expect(asked[0]?.operation.kind).toBe("get");
  });

  it("does not leave a stream open for HEAD", async () => {
    let closed = false;
    const frames = {
      [Symbol.asyncIterator]: () => ({
        next: async () => ({ done: false, value: FRAMES }),
        return: async () => {
          closed = true;
          return { done: true, value: undefined };
        },
      }),
    };
    const { status, body } = await ask(request("HEAD", "/tasks/t1:subscribe"), () => frames);
    expect([status, body, closed]).toEqual([200, undefined, true]);
  });
});

describe("version", () => {
  it.each([
    ["the header", request("GET", "/tasks/t1", { headers: { "a2a-version": "1.0" } })],
    ["[VER-CLIENT-002] a patch number", request("GET", "/tasks/t1", { headers: { "a2a-version": "1.0.7" } })],
    ["the query", request("GET", "/tasks/t1?A2A-Version=1.0", { headers: {} })],
    [
      "the query beside an empty header",
      request("GET", "/tasks/t1?A2A-Version=1.0", { headers: { "a2a-version": "" } }),
    ],
  ])("is taken from %s", async (_name, exchange) => {
    expect((await ask(exchange)).status).toBe(200);
  });

  it.each([
    ["[VER-SERVER-003] 0.3", { "a2a-version": "0.3" }],
    ["[VER-SERVER-002] 99.0", { "a2a-version": "99.0" }],
    ["[VER-SERVER-002] 1", { "a2a-version": "1" }],
    ["[VER-SERVER-002] 1.1", { "a2a-version": "1.1" }],
    ["[VER-SERVER-002] nonsense", { "a2a-version": "one" }],
  ])("%s is refused", async (_name, headers) => {
    const { status, body, asked } = await ask(request("GET", "/tasks/t1", { headers }));
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: 400, status: "FAILED_PRECONDITION" });
    expect(body.error.details[0]).toMatchObject({
      reason: "VERSION_NOT_SUPPORTED",
      metadata: { supportedVersions: "1.0" },
    });
    expect(asked).toEqual([]);
  });
});

describe("tenant", () => {
  const body = { message: MESSAGE };
  const outcome = () => ({ message: MESSAGE });

  it.each([
    ["path", "/acme/message:send", body],
    ["path and body", "/acme/message:send", { ...body, tenant: "acme" }],
    ["body", "/message:send", { ...body, tenant: "acme" }],
    ["query", "/message:send?tenant=acme", body],
    ["encoded path", "/%61cme/message:send", body],
  ])("[TENANT-001] comes from the %s", async (_name, path, sent) => {
    const { asked } = await ask(request("POST", path, { body: sent }), outcome);
    expect(asked[0]?.call.tenant).toBe("acme");
  });

  it.each([
    ["/acme/message:send", { ...body, tenant: "other" }, "tenant"],
    ["/acme/message:send?tenant=other", body, "tenant"],
    ["/tasks/t1:cancel", { id: "t2" }, "id"],
    ["/tasks/t1/pushNotificationConfigs", { task_id: "t2", url: "https://x" }, "task_id"],
  ])("[TENANT-001] that %s and %j disagree about is refused", async (path, sent, field) => {
    const { status, body: answer, asked } = await ask(request("POST", path, { body: sent }), outcome);
    expect(status).toBe(400);
    expect(answer.error.details[1].fieldViolations[0].field).toBe(field);
    expect(asked).toEqual([]);
  });
});

describe("query", () => {
  it.each([
    "pageSize=0",
    "pageSize=101",
    "pageSize=ten",
    "status=working",
    "status=9",
    "historyLength=-1",
    "includeArtifacts=yes",
    "includeArtifacts=1",
    "statusTimestampAfter=2026-01-01",
    "status=TASK_STATE_WORKING&status=TASK_STATE_FAILED",
  ])("[CORE-LIST-006] refuses %s", async (query) => {
    const { status, body } = await ask(request("GET", `/tasks?${query}`));
    expect(status).toBe(400);
    expect(body.error.status).toBe("INVALID_ARGUMENT");
    expect(body.error.details[1].fieldViolations[0].field).toBe(query.split("=")[0]);
  });

  it.each([
    ["status=2&page_size=3", { status: "TASK_STATE_WORKING", pageSize: 3 }],
    ["status=0&pageToken=", {}],
    ["contextId=a&contextId=a&unknown=1&__proto__=2", { contextId: "a" }],
    ["statusTimestampAfter=2026-01-01T00:00:00.5Z", { statusTimestampAfter: 1767225600500 }],
  ])("[CORE-LIST-007] reads %s", async (query, input) => {
    const page = { tasks: [], nextPageToken: "", pageSize: 50, totalSize: 0 };
    const { asked } = await ask(request("GET", `/tasks?${query}`), () => page);
    expect(asked[0]?.operation).toEqual({ kind: "list", ...input });
  });
});

describe("errors", () => {
  it.each(ERROR_CODES)("[ERR-CODE-001, HTTP_JSON-ERR-001] %s has its status, reason and domain", async (code) => {
    const { status, headers, body } = await ask(request("GET", "/tasks/t1"), () => {
      throw new ProtocolError(code, "Told to.");
    });
    expect(status).toBe(ERRORS[code].http);
    expect(headers["content-type"]).toBe("application/a2a+json");
    expect(body.error).toMatchObject({ code: ERRORS[code].http, status: ERRORS[code].grpcStatus });
    expect(body.error.details[0]).toEqual({
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      reason: code,
      domain: "a2a-protocol.org",
    });
  });

  it("keeps the text of internal errors to itself", async () => {
    const { status, body } = await ask(request("GET", "/tasks/t1"), () => {
      throw new Error("secret");
    });
    expect(status).toBe(500);
    expect(JSON.stringify(body)).not.toContain("secret");
  });

  it("tells when to come back", async () => {
    const { headers } = await ask(request("GET", "/tasks/t1"), () => {
      throw new ProtocolError("UNAVAILABLE", "Later.", { retryAfter: 3 });
    });
    expect(headers["retry-after"]).toBe("3");
  });

  it.each([
    ["[CORE-ERR-002] no body", undefined, "INVALID_PARAMS"],
    ["[DM-PARTS-001] no parts", { message: { ...MESSAGE, parts: [] } }, "INVALID_PARAMS"],
    ["a list", "[]", "INVALID_PARAMS"],
    ["broken JSON", "{", "PARSE_ERROR"],
    ["deep JSON", `${"[".repeat(65)}${"]".repeat(65)}`, "INVALID_REQUEST"],
  ])("refuses %s before any work", async (_name, body, reason) => {
    const { status, body: answer, asked } = await ask(request("POST", "/message:send", { body }));
    expect(status).toBe(400);
    expect(answer.error.details[0].reason).toBe(reason);
    expect(asked).toEqual([]);
  });

  it("refuses text that is not UTF-8", async () => {
    const exchange = { ...request("POST", "/message:send"), body: Buffer.from([0x22, 0xff, 0x22]) };
    expect((await ask(exchange)).body.error.details[0].reason).toBe("PARSE_ERROR");
  });

  it("says in its own words what went wrong outside", () => {
    const reply = full(http.refuse(new ProtocolError("UNAUTHENTICATED", "Who are you?"), exchangeOf()));
    expect(reply.status).toBe(401);
    expect(JSON.parse(String(reply.body)).error.status).toBe("UNAUTHENTICATED");
  });
});

describe("media type", () => {
  const body = { message: MESSAGE };

  it.each([undefined, "application/json", "application/a2a+json; charset=utf-8"])("accepts %s", async (type) => {
    const headers = { ...V1, "content-type": type };
    expect((await ask(request("POST", "/message:send", { body, headers }), () => ({ message: MESSAGE }))).status).toBe(
      200,
    );
  });

  it.each(["text/plain", "application/xml"])("[ERR-CODE-001] refuses %s", async (type) => {
    const { status, body: answer } = await ask(
      request("POST", "/message:send", { body, headers: { ...V1, "content-type": type } }),
    );
    expect(status).toBe(400);
    expect(answer.error.details[0].reason).toBe("CONTENT_TYPE_NOT_SUPPORTED");
  });

  it("refuses a compressed body", async () => {
    const { status, body: answer } = await ask(
      request("POST", "/message:send", { body, headers: { ...V1, "content-encoding": "gzip" } }),
    );
    expect(status).toBe(415);
    expect(answer.error).toMatchObject({ code: 415, details: [{ reason: "CONTENT_TYPE_NOT_SUPPORTED" }] });
  });
});

describe("streams", () => {
  const stream = request("POST", "/message:stream", { body: { message: MESSAGE } });

  it("[STREAM-FRAME-001] have no envelope and number their frames", async () => {
    const reply = streamed(
      await http.handle(stream, contextOf(fakeService(() => batches([FRAMES.slice(0, 2), FRAMES.slice(2)])))),
    );
    expect(reply.headers["content-type"]).toBe("text/event-stream");
    const text = FRAMES.map(({ json, number }) => `id: ${number}\ndata: ${json}\n\n`);
    expect(await writesOf(reply)).toEqual([`${text[0]}${text[1]}`, text[2]]);
  });

  it("[STREAM-SUB-003] refused before they begin are an ordinary error", async () => {
    const { status, headers, body } = await ask(stream, () => {
      throw taskNotFound("t1");
    });
    expect(status).toBe(404);
    expect(headers["content-type"]).toBe("application/a2a+json");
    expect(body.error.details[0].reason).toBe("TASK_NOT_FOUND");
  });

  it("failing later end with an error event", async () => {
    const failure = new ProtocolError("UNAVAILABLE", "Gone.", { retryAfter: 1 });
    const reply = await http.handle(stream, contextOf(fakeService(() => batches([FRAMES.slice(0, 1)], failure))));
    const [, last] = await writesOf(reply);
    expect(last).toMatch(/^event: error\ndata: \{"error":\{"code":503,"status":"UNAVAILABLE",.*\}\n\n$/);
  });
});
