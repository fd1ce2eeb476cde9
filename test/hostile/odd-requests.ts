/** Requests that are odd. Some of them are legal; all of them get an answer that makes sense. */
import fc, { type Arbitrary } from "fast-check";
import { anyOf } from "./batches.ts";
import { envelope, type HostileRequest, inUrl, type Known, rest, rpc, sends, V1_JSON } from "./hostile-request.ts";

const METHODS = ["SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask"];
const HTTP_METHODS = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "TRACE",
  "PROPFIND",
  "PURGE",
  "LOCK",
  "M-SEARCH",
];

export const oddText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.constantFrom(
    "\u0000",
    "\u2028",
    "\ud83d\ude00".repeat(50),
    "</script>",
    "${jndi}",
    "../../etc/passwd",
    "'; DROP TABLE tasks; --",
  ),
);

export const oddKey = fc.oneof(
  oddText,
  fc.constantFrom("__proto__", "constructor", "prototype", "toString", "toJSON", "then", "length"),
);
export const oddJson = fc.oneof(
  fc.jsonValue({ maxDepth: 6 }),
  fc.dictionary(oddKey, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 6 }),
);

/** Legal in form, with anything at all wherever anything is allowed. */
const legal = anyOf(
  fc
    .record({
      message: fc.record(
        {
          messageId: oddText.map((text) => text || "x"),
          role: fc.constantFrom<unknown>("ROLE_USER", "ROLE_AGENT", 1),
          parts: fc.array(
            fc.oneof(
              oddText.map((text) => ({ text })),
              oddJson.map((data) => ({ data })),
              fc.tuple(oddText, oddJson).map(([text, value]) => ({ text, metadata: { value }, filename: text })),
            ),
            { minLength: 1, maxLength: 5 },
          ),
          contextId: oddText,
          metadata: fc.dictionary(oddKey, oddJson, { maxKeys: 5 }),
          extensions: fc.array(oddText, { maxLength: 3 }),
          referenceTaskIds: fc.array(oddText, { maxLength: 3 }),
        },
        { requiredKeys: ["messageId", "role", "parts"] },
      ),
      metadata: fc.dictionary(oddKey, oddJson, { maxKeys: 3 }),
      tenant: oddText,
      "\u2713": oddJson,
    })
    .map((params) => sends("legal but odd", params)),
);

const anyParams = fc
  .tuple(
    fc.constantFrom(...METHODS),
    fc.oneof(
      fc.object({ maxDepth: 3, key: fc.constantFrom("id", "message", "parts", "status", "tenant", "x") }),
      fc.array(oddJson),
    ),
  )
  .map(([method, params]) => rpc("any params", envelope(method, JSON.stringify(params) ?? "{}")));

const anyBody = fc
  .tuple(
    fc.constantFrom("/message:send", "/message:stream", "/tasks/x:cancel", "/tasks/x:subscribe", "/a/message:send"),
    oddJson,
  )
  .map(([path, value]) => rest("any body", path, JSON.stringify(value)));

const pathCharacters = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  maxLength: 60,
});

const oddPath = fc
  .tuple(
    fc.constantFrom(...HTTP_METHODS),
    fc.oneof(
      pathCharacters,
      pathCharacters.map((junk) => `rest/tasks/${junk}`),
      pathCharacters.map((junk) => `rest/${junk}/message:send`),
      pathCharacters.map((junk) => `rest/tasks?${junk}`),
      pathCharacters.map((junk) => `agents/${junk}/rest/tasks`),
      fc.constantFrom(
        "%",
        "%zz",
        "%00",
        "%2e%2e/%2e%2e/etc/passwd",
        "../../healthz",
        "rest/../rest/tasks",
        "rest/tasks/%E0%A4%A",
        "rest/%ff/tasks",
        "rest/tasks/%2F",
        "agents/%E0%A4%A",
        "agents/__proto__",
        "agents/constructor/.well-known/agent-card.json",
        "rest/__proto__/tasks",
        ".well-known/agent-card.json?x=%",
        "//evil.example.com/",
        "http://evil.example.com/",
        "?A2A-Version=1.0",
        "rest/tasks?A2A-Version=%ff&status=%00",
        "x".repeat(6_000),
        `rest/tasks/${"y".repeat(6_000)}`,
        `rest/${"a/".repeat(2_000)}`,
        `rest/tasks?${"pageSize=1&".repeat(1_000)}`,
      ),
    ),
    fc.boolean(),
  )
  .map(
    ([method, path, atRoot]): HostileRequest => ({
      label: "odd path",
      lane: "server",
      atRoot,
      raw: { method, path: `/${path}`, headers: V1_JSON },
    }),
  );

export const headerValue = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCharCode(code)),
  maxLength: 60,
});

const oddHeaders = fc
  .tuple(
    fc.constantFrom(
      "a2a-extensions",
      "idempotency-key",
      "last-event-id",
      "accept",
      "if-none-match",
      "origin",
      "cookie",
      "authorization",
      "x-forwarded-for",
      "a2a-version",
      "content-type",
      "host",
      "range",
      "upgrade",
    ),
    fc.oneof(
      headerValue,
      fc.constantFrom("*", ",,,,", "urn:dragoman:ext:idempotency:v1", "x".repeat(4_000), "null", "0"),
    ),
    fc.constantFrom("ListTasks", "SendMessage", "GetTask"),
  )
  .map(([name, value, method]): HostileRequest => {
    const params = { id: "x", message: { messageId: "same", role: "ROLE_USER", parts: [{ text: "hi" }] } };
    const request = rpc("odd headers", envelope(method, JSON.stringify(params)), { [name]: value });
    // A foreign origin is turned away before a binding sees the request.
    return name === "origin" ? { ...request, lane: "server" } : request;
  });

const conversation = (known: () => Known) =>
  anyOf(
    fc.tuple(oddText, fc.integer({ min: -2, max: 40 })).map(([text, cursor]) => {
      const { ended, waiting } = known();
      const task = JSON.stringify({ id: waiting });
      return [
        rpc("resume", envelope("SubscribeToTask", task), { "last-event-id": String(cursor) }),
        rpc("replay", envelope("SubscribeToTask", JSON.stringify({ id: ended })), { "last-event-id": String(cursor) }),
        rest("get", `/tasks/${waiting}?historyLength=${cursor}`),
        rest("list", `/tasks?contextId=${inUrl(text)}&pageSize=${cursor}`),
        ...sends("talk to the waiting task", {
          message: { messageId: "m", taskId: waiting, role: "ROLE_USER", parts: [{ text: "input again?" }] },
        }),
      ];
    }),
  );

export function oddRequests(known: () => Known): Arbitrary<HostileRequest> {
  return fc.oneof(
    { weight: 8, arbitrary: legal },
    { weight: 6, arbitrary: anyParams },
    { weight: 4, arbitrary: anyBody },
    { weight: 10, arbitrary: oddPath },
    { weight: 6, arbitrary: oddHeaders },
    { weight: 2, arbitrary: conversation(known) },
  );
}
