/** The dialects before 1.0 as one speaks them over HTTP: what is said in each, and what cannot be said. */
import fc, { type Arbitrary } from "fast-check";
import { envelope, type HostileRequest, inUrl, JSON_TYPE, type Lane } from "./hostile-request.ts";
import { wrongWebhook } from "./refused-requests.ts";

export type Params = Readonly<Record<string, unknown>>;

export interface RequestDialect {
  readonly lane: Lane;
  /** Params of a send. */
  readonly valid: Arbitrary<Params>;
  /** What cannot be read as what stands at that path, even generously. */
  readonly wrong: Arbitrary<readonly [path: string, value: unknown]>;
  /** What a send cannot do without. */
  readonly required: readonly string[];
  /** To every place that takes such a body. */
  say(label: string, body: string | Uint8Array): HostileRequest[];
  /** The body of a send, or of a stream. */
  bodies(paramsJson: string): string[];
  /** The same, said to a task. */
  toTask(params: Params, taskId: string, contextId?: string): Params;
  /** What is said to an unknown task makes it. */
  readonly makesTasks: boolean;
  get(id: string): HostileRequest;
  cancel(id: string): HostileRequest;
  subscribe(id: string, headers?: Readonly<Record<string, string>>): HostileRequest;
  /** A part that holds any value. */
  part(text: string, data: unknown): object[];
}

const text = fc.oneof(fc.integer(), fc.boolean(), fc.constant({}), fc.constant([]), fc.constant(["x"]));
const object = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.string(), { maxLength: 2 }));
const count = fc.constantFrom<unknown>("many", 1.5, -1, 2 ** 31, "1e3", true, {}, []);
const flag = fc.constantFrom<unknown>("yes", 1, 0, "true", {}, []);
const list = fc.constantFrom<unknown>("x", 5, true, { 0: "x" }, { length: 1 }, [5], [{}]);
const role = fc.constantFrom<unknown>("king", "", 3, -1, true, {}, ["user"], "unspecified");
const at = (paths: readonly string[], values: Arbitrary<unknown>) => fc.tuple(fc.constantFrom(...paths), values);
const webhook = wrongWebhook.map((url) => ({ url }));

const shortText = fc.string({ minLength: 1, maxLength: 20 });
const metadata = fc.record({ key: fc.string() });

function rpcRequest(lane: Lane, label: string, method: string, params: unknown): HostileRequest {
  return posted(lane, label, "", envelope(method, JSON.stringify(params)));
}

function posted(lane: Lane, label: string, path: string, body: string | Uint8Array): HostileRequest {
  return { label, lane, raw: { method: "POST", path, headers: JSON_TYPE, body } };
}

function asked(
  lane: Lane,
  label: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): HostileRequest {
  return { label, lane, raw: { method: "GET", path, headers } };
}

function withHeaders(request: HostileRequest, headers: Readonly<Record<string, string>>): HostileRequest {
  return { ...request, raw: { ...request.raw, headers: { ...request.raw.headers, ...headers } } };
}

const V03_RPC = "0.3 JSON-RPC";
const V03_HTTP = "0.3 HTTP+JSON";
const V01 = "0.1 JSON-RPC";
const TASKS_REST = "tasks-rest";

function messageTo({ message, ...rest }: Params, taskId: string, contextId?: string): Params {
  const { contextId: _, ...kept } = message as Params;
  return { ...rest, message: { ...kept, taskId, ...(contextId === undefined ? undefined : { contextId }) } };
}

const v03Rpc: RequestDialect = {
  lane: V03_RPC,
  valid: fc.record({
    message: fc.record({
      kind: fc.constant("message"),
      messageId: shortText,
      role: fc.constant("user"),
      parts: fc.array(fc.record({ kind: fc.constant("text"), text: shortText }), { minLength: 1, maxLength: 3 }),
      contextId: shortText,
    }),
    configuration: fc.record({ historyLength: fc.nat(10), blocking: fc.boolean() }),
    metadata,
  }),
  wrong: fc.oneof(
    at(["message", "configuration", "metadata", "message.metadata"], object),
    at(["message.messageId", "message.contextId", "message.taskId"], text),
    at(["message.role"], role),
    at(["message.kind"], fc.constantFrom<unknown>("task", "text", 5, {})),
    at(["message.extensions", "message.referenceTaskIds", "configuration.acceptedOutputModes"], list),
    at(["configuration.historyLength"], count),
    at(["configuration.blocking"], flag),
    at(["configuration.pushNotificationConfig"], fc.oneof(object, webhook, fc.constant({}))),
    at(
      ["message.parts"],
      fc.constantFrom<unknown>(
        ...["x", 5, { 0: "x" }, [], [{}], [null], ["x"], [[]], [{ kind: "text" }], [{ kind: "text", text: 1 }]],
        [{ kind: "video", text: "a" }],
        [{ kind: "file" }],
        [{ kind: "file", file: {} }],
        [{ kind: "file", file: "x" }],
        [{ kind: "file", file: { bytes: "not base64!" } }],
        [{ kind: "file", file: { bytes: "aGk=", uri: "https://x.test/" } }],
        [{ kind: "file", file: { uri: 5 } }],
        [{ kind: "data" }],
        [{ text: "a", data: {} }],
        [{ kind: "text", text: "a", metadata: "b" }],
      ),
    ),
  ),
  required: ["message", "message.role", "message.parts"],
  say: (label, body) => [posted(V03_RPC, label, "", body)],
  bodies: (params) => [envelope("message/send", params), envelope("message/stream", params)],
  toTask: messageTo,
  makesTasks: false,
  get: (id) => rpcRequest(V03_RPC, "get", "tasks/get", { id }),
  cancel: (id) => rpcRequest(V03_RPC, "cancel", "tasks/cancel", { id }),
  subscribe: (id, headers = {}) => withHeaders(rpcRequest(V03_RPC, "subscribe", "tasks/resubscribe", { id }), headers),
  part: (said, data) => [
    { kind: "text", text: said },
    { kind: "data", data: { value: data } },
  ],
};

const v03Http: RequestDialect = {
  lane: V03_HTTP,
  valid: fc.record({
    message: fc.record({
      messageId: shortText,
      role: fc.constant("ROLE_USER"),
      content: fc.array(fc.record({ text: shortText }), { minLength: 1, maxLength: 3 }),
      contextId: shortText,
    }),
    configuration: fc.record({ historyLength: fc.nat(10), blocking: fc.boolean() }),
    metadata,
  }),
  wrong: fc.oneof(
    at(["message", "configuration", "metadata", "message.metadata"], object),
    at(["message.messageId", "message.contextId", "message.taskId"], text),
    at(["message.role"], fc.constantFrom<unknown>("king", "", 3, -1, 1.5, true, {}, [1], "ROLE_UNSPECIFIED", 0)),
    at(["message.extensions", "configuration.acceptedOutputModes"], list),
    at(["configuration.historyLength"], count),
    at(["configuration.blocking"], flag),
    at(["configuration.pushNotification"], fc.oneof(object, webhook)),
    at(
      ["message.content"],
      fc.constantFrom<unknown>(
        ...["x", 5, { 0: "x" }, [], [{}], [null], ["x"], [[]], [{ text: 1 }], [{ file: {} }], [{ file: "x" }]],
        [{ file: { fileWithBytes: "not base64!" } }],
        [{ file: { fileWithBytes: "aGk=", fileWithUri: "https://x.test/" } }],
        [{ text: "a", file: { fileWithUri: "https://x.test/" } }],
        [{ data: "x" }],
        [{ data: { data: "x" } }],
        [{ text: "a", metadata: "b" }],
      ),
    ),
  ),
  required: ["message", "message.role", "message.content"],
  say: (label, body) => [
    posted(V03_HTTP, label, "/rest/v1/message:send", body),
    posted(V03_HTTP, label, "/rest/v1/message:stream", body),
  ],
  bodies: (params) => [params],
  toTask: messageTo,
  makesTasks: false,
  get: (id) => asked(V03_HTTP, "get", `/rest/v1/tasks/${inUrl(id)}`),
  cancel: (id) => posted(V03_HTTP, "cancel", `/rest/v1/tasks/${inUrl(id)}:cancel`, "{}"),
  subscribe: (id, headers) => asked(V03_HTTP, "subscribe", `/rest/v1/tasks/${inUrl(id)}:subscribe`, headers),
  part: (said, data) => [{ text: said }, { data: { data: { value: data } } }],
};

/** Parts of both dialects before 0.2. */
const earlyParts = fc.array(fc.record({ type: fc.constant("text"), text: shortText }), { minLength: 1, maxLength: 3 });
const wrongEarlyParts = fc.constantFrom<unknown>(
  ...["x", 5, { 0: "x" }, [], [{}], [null], ["x"], [[]], [{ type: "text" }], [{ type: "text", text: 1 }]],
  [{ type: "file" }],
  [{ type: "file", file: {} }],
  [{ type: "file", file: "x" }],
  [{ type: "file", file: { bytes: "not base64!" } }],
  [{ type: "file", file: { bytes: "aGk=", uri: "https://x.test/" } }],
  [{ type: "file", file: { uri: 5 } }],
  [{ type: "text", text: "a", metadata: "b" }],
);
const earlyPart = (said: string, data: unknown) => [
  { type: "text", text: said },
  { type: "data", data: { value: data } },
];

const v01: RequestDialect = {
  lane: V01,
  valid: fc.record({
    id: fc.uuid(),
    sessionId: shortText,
    message: fc.record({ role: fc.constant("user"), parts: earlyParts }),
    historyLength: fc.nat(10),
    metadata,
  }),
  wrong: fc.oneof(
    at(["message", "metadata", "message.metadata"], object),
    at(["id", "sessionId"], text),
    at(["id"], fc.constantFrom("", "x".repeat(2_000))),
    at(["message.role"], role),
    at(["historyLength"], count),
    at(["acceptedOutputModes"], list),
    at(["pushNotification"], fc.oneof(object, webhook, fc.constant({}))),
    at(["message.parts"], wrongEarlyParts),
  ),
  required: ["id", "message", "message.role", "message.parts"],
  say: (label, body) => [posted(V01, label, "", body)],
  bodies: (params) => [envelope("tasks/send", params), envelope("tasks/sendSubscribe", params)],
  toTask: ({ sessionId: _, ...params }, id, sessionId) => ({
    ...params,
    id,
    ...(sessionId === undefined ? undefined : { sessionId }),
  }),
  makesTasks: true,
  get: (id) => withHeaders(rpcRequest(V01, "get", "tasks/get", { id }), { "a2a-version": "0.1" }),
  cancel: (id) => withHeaders(rpcRequest(V01, "cancel", "tasks/cancel", { id }), { "a2a-version": "0.1" }),
  subscribe: (id, headers = {}) =>
    withHeaders(rpcRequest(V01, "subscribe", "tasks/resubscribe", { id }), { "a2a-version": "0.1", ...headers }),
  part: earlyPart,
};

const tasksRest: RequestDialect = {
  lane: TASKS_REST,
  valid: fc.record({
    message: fc.record({
      role: fc.constant("user"),
      parts: earlyParts,
      messageId: shortText,
      contextId: shortText,
    }),
    metadata,
  }),
  wrong: fc.oneof(
    at(["message", "metadata", "message.metadata"], object),
    at(["message.messageId", "message.contextId", "message.taskId"], text),
    at(["message.role"], role),
    at(["message.parts"], wrongEarlyParts),
  ),
  required: ["message", "message.role", "message.parts"],
  say: (label, body) => [
    posted(TASKS_REST, label, "/tasks/send", body),
    posted(TASKS_REST, label, "/tasks/sendSubscribe", body),
  ],
  bodies: (params) => [params],
  toTask: messageTo,
  makesTasks: false,
  get: (id) => asked(TASKS_REST, "get", `/tasks/${inUrl(id)}`),
  cancel: (id) => posted(TASKS_REST, "cancel", `/tasks/${inUrl(id)}/cancel`, "{}"),
  subscribe: (id, headers) => asked(TASKS_REST, "subscribe", `/tasks/${inUrl(id)}/subscribe`, headers),
  part: earlyPart,
};

export const OLDER_DIALECTS: readonly RequestDialect[] = [v03Rpc, v03Http, v01, tasksRest];
