/** Requests that must be refused, every single one, and leave nothing behind. */
import fc, { type Arbitrary } from "fast-check";
import { anyOf } from "./batches.ts";
import { envelope, type HostileRequest, inUrl, type Known, rest, rpc, sends, V1_JSON } from "./hostile-request.ts";

const METHODS = [
  "SendMessage",
  "SendStreamingMessage",
  "GetTask",
  "ListTasks",
  "CancelTask",
  "SubscribeToTask",
  "CreateTaskPushNotificationConfig",
  "GetTaskPushNotificationConfig",
  "ListTaskPushNotificationConfigs",
  "DeleteTaskPushNotificationConfig",
  "GetExtendedAgentCard",
];

interface ValidParams {
  readonly message: Readonly<Record<string, unknown>>;
  readonly configuration: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

const valid: Arbitrary<ValidParams> = fc.record({
  message: fc.record({
    messageId: fc.string({ minLength: 1, maxLength: 20 }),
    role: fc.constant("ROLE_USER"),
    parts: fc.array(fc.record({ text: fc.string({ maxLength: 20 }) }), { minLength: 1, maxLength: 3 }),
    contextId: fc.string({ minLength: 1, maxLength: 8 }),
  }),
  configuration: fc.record({ historyLength: fc.nat(10), returnImmediately: fc.boolean() }),
  metadata: fc.record({ key: fc.string() }),
});

export const brokenBytes: Arbitrary<Uint8Array> = fc.oneof(
  valid.chain((params) => {
    const text = Buffer.from(envelope("SendMessage", JSON.stringify(params)));
    return fc.oneof(
      fc.integer({ min: 1, max: text.length - 1 }).map((end) => text.subarray(0, end)),
      fc
        .tuple(fc.nat(text.length), fc.constantFrom([0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf5, 0x80]))
        .map(([at, bytes]) => Buffer.concat([text.subarray(0, at), Buffer.from(bytes), text.subarray(at)])),
      fc.constantFrom("}", "]", ",", "\0", "//", "NaN").map((tail) => Buffer.concat([text, Buffer.from(tail)])),
    );
  }),
  fc.uint8Array({ minLength: 1, maxLength: 64 }),
  fc
    .constantFrom("[", "{", '"', "nul", "{'a':1}", "\ufeff", "undefined", "01", "[1,]")
    .map((text) => Buffer.from(text)),
);

const malformed = brokenBytes.chain((body) =>
  fc.constantFrom(
    rpc("malformed body", body),
    rest("malformed body", "/message:send", body),
    rest("malformed body", "/message:stream", body),
  ),
);

const notAnObject = fc.oneof(fc.string(), fc.double(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 }));

const wrongEnvelope = fc
  .oneof(
    fc.record({
      jsonrpc: fc.oneof(fc.string(), fc.constant(2), fc.constant(null)),
      id: fc.nat(),
      method: fc.constant("ListTasks"),
    }),
    fc.record({
      jsonrpc: fc.constant("2.0"),
      id: fc.nat(),
      method: fc.oneof(fc.integer(), fc.constant(null), fc.array(fc.string())),
    }),
    fc.record({
      jsonrpc: fc.constant("2.0"),
      id: fc.oneof(fc.boolean(), fc.array(fc.nat()), fc.dictionary(fc.string(), fc.nat()), fc.constant(2 ** 60)),
      method: fc.constant("ListTasks"),
    }),
    fc.record({
      jsonrpc: fc.constant("2.0"),
      method: fc.constantFrom(...METHODS.filter((method) => method !== "ListTasks")),
    }),
    fc.record({
      jsonrpc: fc.constant("2.0"),
      id: fc.nat(),
      method: fc.constantFrom(...METHODS),
      params: fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)),
    }),
    fc.array(fc.constant({ jsonrpc: "2.0", id: 1, method: "ListTasks", params: {} }), { maxLength: 3 }),
    notAnObject,
  )
  .map((value) => rpc("wrong envelope", JSON.stringify(value)));

const unknownMethod = fc
  .oneof(
    fc.string(),
    fc.constantFrom("__proto__", "constructor", "toString", "hasOwnProperty", "sendmessage", "message/send", "rpc.on"),
    fc.constantFrom(...METHODS).map((method) => `${method} `),
  )
  .filter((method) => !METHODS.includes(method))
  .chain((method) => valid.map((params) => rpc("unknown method", envelope(method, JSON.stringify(params)))));

/** Values that cannot be read as the type, even generously; `null` counts as absent and is not among them. */
const WRONG = {
  text: fc.oneof(fc.integer(), fc.boolean(), fc.constant({}), fc.constant([]), fc.constant(["x"])),
  role: fc.constantFrom<unknown>("user", "ROLE_KING", "", 3, -1, 1.5, true, {}, [1], "ROLE_UNSPECIFIED", 0),
  count: fc.constantFrom<unknown>("many", 1.5, -1, 2 ** 31, "1e3", true, {}, []),
  flag: fc.constantFrom<unknown>("yes", 1, 0, "true", {}, []),
  list: fc.constantFrom<unknown>("x", 5, true, { 0: "x" }, { length: 1 }),
  object: fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.string(), { maxLength: 2 })),
  parts: fc.constantFrom<unknown>(
    [],
    [{}],
    [null],
    ["x"],
    [[]],
    [{ text: 1 }],
    [{ text: "a", url: "b" }],
    [{ raw: "not base64!" }],
    [{ raw: 5 }],
    [{ metadata: {} }],
    [{ kind: "text" }],
    [{ text: "a", metadata: "b" }],
    [{ text: "a", filename: 1 }],
  ),
};

/** Nowhere that a notification could be sent to. */
export const wrongWebhook = fc.constantFrom<unknown>(
  "",
  "x",
  "/hook",
  "//x.test/",
  "file:///etc/passwd",
  "javascript:alert(1)",
  "ftp://x.test/",
  "http://",
  "http:x.test",
  "https://user:secret@x.test/",
  "https://x.test/a b",
  "https://x.test\\@y.test/",
  `https://x.test/${"x".repeat(3_000)}`,
  5,
  {},
  ["https://x.test/"],
);

const wrongType = anyOf(
  fc
    .oneof(
      fc.tuple(fc.constantFrom("message", "configuration", "metadata"), WRONG.object),
      fc.tuple(fc.constantFrom("message.messageId", "message.contextId", "message.taskId", "tenant"), WRONG.text),
      fc.tuple(fc.constant("message.role"), WRONG.role),
      fc.tuple(fc.constant("message.parts"), fc.oneof(WRONG.list, WRONG.parts)),
      fc.tuple(fc.constantFrom("message.extensions", "message.referenceTaskIds"), WRONG.list),
      fc.tuple(fc.constant("message.metadata"), WRONG.object),
      fc.tuple(fc.constant("configuration.historyLength"), WRONG.count),
      fc.tuple(fc.constant("configuration.returnImmediately"), WRONG.flag),
      fc.tuple(fc.constant("configuration.acceptedOutputModes"), WRONG.list),
      fc.tuple(
        fc.constant("configuration.taskPushNotificationConfig"),
        fc.oneof(
          WRONG.object,
          wrongWebhook.map((url) => ({ url })),
        ),
      ),
    )
    .chain(([path, value]) => valid.map((params) => sends(`wrong type of ${path}`, replaced(params, path, value)))),
);

function replaced(params: ValidParams, path: string, value: unknown): object {
  const [first = "", second] = path.split(".");
  if (second === undefined) return { ...params, [first]: value };
  return { ...params, [first]: { ...params[first as keyof ValidParams], [second]: value } };
}

const missing = anyOf(
  fc
    .tuple(fc.constantFrom("messageId", "role", "parts"), fc.constantFrom<unknown>(undefined, null, "", []), valid)
    .map(([member, value, params]) => {
      const { [member]: _, ...rest } = params.message;
      const message = value === undefined ? rest : { ...rest, [member]: value };
      return sends(`no ${member}`, { ...params, message });
    }),
);

const hidden = anyOf(
  fc
    .tuple(fc.constantFrom("__proto__", "constructor", "prototype", "Message", "MESSAGE"), valid)
    .map(([key, params]) => {
      const text = `{${JSON.stringify(key)}:${JSON.stringify(params)}}`;
      const label = `everything under ${key}`;
      return [rpc(label, envelope("SendMessage", text)), rest(label, "/message:send", text)];
    }),
);

const deep = anyOf(
  fc.tuple(fc.integer({ min: 65, max: 3_000 }), fc.boolean(), valid).map(([levels, lists, params]) => {
    const [open, close] = lists ? ["[", "]"] : ['{"a":', "}"];
    const nested = open.repeat(levels) + (lists ? "" : "1") + close.repeat(levels);
    const text = JSON.stringify({ ...params, metadata: { deep: "HERE" } }).replace('"HERE"', nested);
    return [rpc("deep nesting", envelope("SendMessage", text)), rest("deep nesting", "/message:send", text)];
  }),
);

const crowded = anyOf(
  fc.tuple(fc.integer({ min: 1_001, max: 4_000 }), valid).map(([count, params]) => {
    const parts = Array.from({ length: count }, () => ({ text: "" }));
    return sends("thousands of parts", { ...params, message: { ...params.message, parts } });
  }),
);

const huge = fc
  .tuple(fc.integer({ min: 270_000, max: 600_000 }), fc.boolean())
  .map(([size, chunked]): HostileRequest => {
    const raw = { method: "POST", headers: V1_JSON, body: Buffer.alloc(size, 0x20), chunked };
    return { label: "huge body", lane: "JSON-RPC", raw };
  });

const refusedHeaders = valid.chain((params) =>
  fc
    .constantFrom<Readonly<Record<string, string>>>(
      { "a2a-version": "0.9" },
      { "a2a-version": "1.0.0.0" },
      { "a2a-version": "\u00b9.0" },
      { "content-type": "text/plain" },
      { "content-type": "application/x-www-form-urlencoded" },
      { "content-type": "json" },
      { "content-type": ";;;" },
    )
    .chain((headers) => {
      const text = JSON.stringify(params);
      const overRest = rest("refused headers", "/message:send", text);
      return fc.constantFrom(rpc("refused headers", envelope("SendMessage", text), headers), {
        ...overRest,
        raw: { ...overRest.raw, headers: { ...V1_JSON, ...headers } },
      });
    }),
);

const encoded = fc.constantFrom("gzip", "deflate, br", "zstd", "\u00ff").map((encoding): HostileRequest => {
  const headers = { ...V1_JSON, "content-encoding": encoding };
  return { label: "encoded body", lane: "JSON-RPC", raw: { method: "POST", headers, body: "{}" } };
});

export const oddId = fc
  .oneof(
    fc.string({ minLength: 1 }),
    fc.constantFrom("__proto__", "constructor", "..", "%", "\u0000", "' OR 1=1 --", "x".repeat(3_000), "\ud800"),
    fc.uuid(),
  )
  .filter((id) => id !== "");

const aboutUnknownTasks = anyOf(
  fc.tuple(oddId, valid).map(([id, params]) => {
    const inPath = inUrl(id);
    const named = JSON.stringify({ id });
    return [
      ...sends("message to an unknown task", { ...params, message: { ...params.message, taskId: id } }),
      rpc("get unknown", envelope("GetTask", named)),
      rpc("cancel unknown", envelope("CancelTask", named)),
      rpc("subscribe unknown", envelope("SubscribeToTask", named)),
      rest("cancel unknown", `/tasks/${inPath}:cancel`, "{}"),
      rest("get unknown", `/tasks/${inPath}?historyLength=1`),
    ];
  }),
);

const aboutKnownTasks = (known: () => Known) =>
  anyOf(
    fc
      .tuple(valid, fc.string({ minLength: 1 }), fc.string({ minLength: 1, maxLength: 12 }), wrongWebhook)
      .map(([params, contextId, cursor, url]) => {
        const { ended, waiting } = known();
        const { contextId: _, ...message } = params.message;
        const unusable = { "last-event-id": /^[\x21-\x7e]+$/.test(cursor) && !/^\d+$/.test(cursor) ? cursor : "77777" };
        return [
          ...sends("message to an ended task", { ...params, message: { ...message, taskId: ended } }),
          ...sends("mismatched context", { ...params, message: { ...message, taskId: waiting, contextId } }),
          rpc("cancel an ended task", envelope("CancelTask", JSON.stringify({ id: ended }))),
          rpc("subscribe to an ended task", envelope("SubscribeToTask", JSON.stringify({ id: ended }))),
          rpc("bad cursor", envelope("SubscribeToTask", JSON.stringify({ id: waiting })), unusable),
          rest("bad history", `/tasks/${waiting}?historyLength=${encodeURIComponent(`x${cursor}`)}`),
          rest("twice the same", `/tasks/${waiting}?historyLength=1&historyLength=2`),
          rest("another task in the body", `/tasks/${waiting}:cancel`, JSON.stringify({ id: ended })),
          rest("push", `/tasks/${waiting}/pushNotificationConfigs`, JSON.stringify({ url })),
        ];
      }),
  );

const badLists = anyOf(
  fc
    .oneof(
      fc.tuple(
        fc.constant("pageToken"),
        fc.oneof(fc.string({ minLength: 1 }), fc.base64String({ minLength: 4 }), fc.jsonValue().map(toToken)),
      ),
      fc.tuple(
        fc.constant("pageSize"),
        fc.oneof(fc.integer({ max: 0 }), fc.integer({ min: 101 }), fc.constantFrom("ten", "1.5", "NaN")),
      ),
      fc.tuple(fc.constant("status"), fc.constantFrom("x", "TASK_STATE_", "completed", 9, -1, 1.5)),
      fc.tuple(fc.constant("statusTimestampAfter"), fc.constantFrom("now", "2026", "2026-99-99T00:00:00Z", "0")),
      fc.tuple(fc.constant("historyLength"), fc.integer({ max: -1 })),
      fc.tuple(fc.constant("includeArtifacts"), fc.constantFrom("yes", "1", "TRUE")),
    )
    .map(([field, value]) => [
      rpc(`bad ${field}`, envelope("ListTasks", JSON.stringify({ [field]: value }))),
      rest(`bad ${field}`, `/tasks?${field}=${inUrl(String(value))}`),
    ]),
);

function toToken(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

export function refusedRequests(known: () => Known): Arbitrary<HostileRequest> {
  return fc.oneof(
    { weight: 12, arbitrary: malformed },
    { weight: 8, arbitrary: wrongEnvelope },
    { weight: 6, arbitrary: unknownMethod },
    { weight: 20, arbitrary: wrongType },
    { weight: 8, arbitrary: missing },
    { weight: 3, arbitrary: hidden },
    { weight: 2, arbitrary: deep },
    { weight: 1, arbitrary: crowded },
    { weight: 1, arbitrary: huge },
    { weight: 4, arbitrary: refusedHeaders },
    { weight: 1, arbitrary: encoded },
    { weight: 8, arbitrary: aboutUnknownTasks },
    { weight: 10, arbitrary: aboutKnownTasks(known) },
    { weight: 10, arbitrary: badLists },
  );
}
