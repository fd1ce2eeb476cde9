/**
 * For each check a way to be wrong that it must notice. `plays` is what the proxy does so that a right server can be
 * seen at all, where ours does not go there by itself.
 */
import { drop, get, list, set } from "./paths.ts";
import { END, type SeenRequest, type SpoiledAnswer, type Spoiler } from "./proxy.ts";

export type Stage = "plain" | "silent" | "strict" | "guarded";

export interface Mutation {
  readonly check: string;
  readonly wrong: Spoiler;
  readonly plays?: Spoiler;
  /** Checks that run before, so that there is something to judge. */
  readonly after?: readonly string[];
  readonly binding?: "JSONRPC" | "HTTP+JSON";
  readonly version?: "1.0" | "0.3";
  /** The agent: `silent` does not stream, `strict` requires an extension, `guarded` knows its callers. */
  readonly stage?: Stage;
}

const methodOf = ({ body }: SeenRequest): unknown => get(body, "method");
const isCard = ({ path }: SeenRequest): boolean => path.includes("agent-card.json");

/** Changes the result of a method. */
const onResult = (method: string, change: (result: unknown, request: SeenRequest) => void): Spoiler => ({
  answer: (answer, request) => {
    const result = get(answer.body, "result");
    if (methodOf(request) === method && result !== undefined) change(result, request);
  },
});

/** Another code for every error of a method. */
const onError = (method: string, code: number): Spoiler => ({
  answer: (answer, request) => {
    if (methodOf(request) !== method || get(answer.body, "error") === undefined) return;
    set(answer.body, "error", { code, message: "wrong" });
  },
});

const onParams = (method: string, change: (params: unknown, request: SeenRequest) => void): Spoiler => ({
  request: (request) => {
    if (methodOf(request) === method) change(get(request.body, "params"), request);
    return undefined;
  },
});

const refusing = (method: string, code: number, when: (request: SeenRequest) => boolean = () => true): Spoiler => ({
  request: (request) =>
    methodOf(request) === method && when(request)
      ? {
          status: 200,
          headers: { "content-type": "application/json" },
          body: envelope(request, { error: { code, message: "no" } }),
        }
      : undefined,
});

const answering = (method: string, result: unknown, when: (request: SeenRequest) => boolean = () => true): Spoiler => ({
  request: (request) =>
    methodOf(request) === method && when(request)
      ? { status: 200, headers: { "content-type": "application/json" }, body: envelope(request, { result }) }
      : undefined,
});

const envelope = ({ body }: SeenRequest, content: object): object => ({
  jsonrpc: "2.0",
  id: get(body, "id"),
  ...content,
});

const onHeader = (change: (headers: Record<string, string>, request: SeenRequest) => void): Spoiler => ({
  request: (request) => {
    change(request.headers, request);
    return undefined;
  },
});

const onCard = (change: (answer: SpoiledAnswer) => void): Spoiler => ({
  answer: (answer, request) => {
    if (isCard(request)) change(answer);
  },
});

const eventsOf = (change: (event: unknown, at: number, stream: number) => readonly unknown[]): Spoiler => ({
  event: (event, at, _request, stream) => change(event, at, stream),
});

const kindOf = (event: unknown): string => Object.keys(Object(get(event, "result")))[0] ?? "";
const stateOf = (event: unknown): string =>
  String(get(event, "result.statusUpdate.status.state") ?? get(event, "result.task.status.state"));
const isEnd = (event: unknown): boolean => /COMPLETED|CANCELED|FAILED|REJECTED/.test(stateOf(event));

const EXTENSION = "urn:a2a:tck:required-extension";
const text = (value: string) => [{ text: value }];

let lastTime = 0;

export const MUTATIONS: readonly Mutation[] = [
  // The card.
  { check: "card-fetched", wrong: onCard(({ headers }) => set(headers, "content-type", "text/html")) },
  { check: "card-members", wrong: onCard(({ body }) => drop(body, "skills.0.tags")) },
  { check: "card-has-interface", wrong: onCard(({ body }) => set(body, "supportedInterfaces", [])) },
  { check: "card-interfaces-complete", wrong: onCard(({ body }) => drop(body, "supportedInterfaces.1.url")) },
  { check: "card-proto-json", wrong: onCard(({ body }) => set(body, "securitySchemes", { key: { type: "apiKey" } })) },
  { check: "card-cache-control", wrong: onCard(({ headers }) => drop(headers, "cache-control")) },
  { check: "card-etag", wrong: onCard(({ headers }) => drop(headers, "etag")) },
  { check: "card-last-modified", wrong: onCard(({ headers }) => drop(headers, "last-modified")) },
  {
    check: "card-signature-header",
    plays: onCard(({ body }) => set(body, "signatures", [signature({ alg: "ES256", kid: "k", typ: "JOSE" })])),
    wrong: onCard(({ body }) => set(body, "signatures", [signature({ alg: "ES256" })])),
  },

  // Service parameters.
  { check: "interface-answers", wrong: onError("GetTask", -32603) },
  { check: "version-not-spoken", wrong: onHeader((headers) => set(headers, "a2a-version", "1.0")) },
  { check: "version-absent", wrong: onHeader((headers) => set(headers, "a2a-version", "1.0")) },
  {
    check: "version-with-patch",
    wrong: onHeader((headers) => {
      if (headers["a2a-version"] === "1.0.7") headers["a2a-version"] = "99.0";
    }),
  },
  {
    check: "parameter-names-without-case",
    wrong: onHeader((headers, { rawNames }) => {
      if (!rawNames.includes("A2A-Version")) drop(headers, "a2a-version");
    }),
  },
  {
    check: "extensions-unknown",
    wrong: {
      answer: ({ headers }, request) => set(headers, "a2a-extensions", request.headers["a2a-extensions"] ?? ""),
    },
  },
  {
    check: "extension-required",
    stage: "strict",
    wrong: onHeader((headers) => set(headers, "a2a-extensions", EXTENSION)),
  },

  // Sending.
  { check: "send-answer", wrong: onResult("SendMessage", (result) => set(result, "message", { messageId: "m" })) },
  {
    check: "send-waits",
    wrong: onParams("SendMessage", (params) => set(params, "configuration", { returnImmediately: true })),
  },
  { check: "send-returns-immediately", wrong: onParams("SendMessage", (params) => drop(params, "configuration")) },
  { check: "send-answer-is-complete", wrong: onResult("SendMessage", (result) => drop(result, "task.artifacts")) },
  {
    check: "send-returns-when-interrupted",
    wrong: { request: (request) => (methodOf(request) === "SendMessage" ? "silence" : undefined) },
  },
  { check: "send-incomplete", wrong: onParams("SendMessage", (params) => set(params, "message.role", "ROLE_USER")) },
  { check: "send-without-parts", wrong: onParams("SendMessage", (params) => set(params, "message.parts", text("x"))) },
  { check: "send-unknown-members", wrong: refusing("SendMessage", -32602) },
  { check: "send-to-ended-task", wrong: onParams("SendMessage", (params) => drop(params, "message.taskId")) },
  {
    check: "send-foreign-content",
    wrong: onParams("SendMessage", (params) => set(params, "message.parts", text("x"))),
  },
  { check: "send-to-unknown-task", wrong: onParams("SendMessage", (params) => drop(params, "message.taskId")) },
  { check: "task-ids-are-new", wrong: onResult("SendMessage", (result) => set(result, "task.id", "same")) },
  { check: "context-generated", wrong: onResult("SendMessage", (result) => drop(result, "task.contextId")) },
  { check: "context-of-client", wrong: onResult("SendMessage", (result) => set(result, "task.contextId", "another")) },
  {
    check: "context-of-task",
    wrong: onResult("SendMessage", (result, request) => {
      if (get(request.body, "params.message.taskId") !== undefined) set(result, "task.contextId", "another");
    }),
  },
  {
    check: "context-contradicts-task",
    wrong: onParams("SendMessage", (params) => drop(params, "message.contextId")),
  },
  {
    check: "demand-for-authentication",
    wrong: onResult("SendMessage", (result) => drop(result, "task.status.message")),
  },

  // Tasks.
  { check: "get-task", wrong: onResult("GetTask", (task) => set(task, "id", "another")) },
  { check: "get-unknown-task", wrong: onError("GetTask", -32602) },
  { check: "history-bounded", wrong: onParams("GetTask", (params) => drop(params, "historyLength")) },
  { check: "history-none", wrong: onParams("GetTask", (params) => drop(params, "historyLength")) },
  { check: "history-none-in-answer", wrong: onParams("SendMessage", (params) => drop(params, "configuration")) },
  { check: "history-in-order", wrong: onResult("GetTask", (task) => list(task, "history").reverse()) },
  { check: "cancel-task", wrong: onResult("CancelTask", (task) => set(task, "id", "another")) },
  { check: "cancel-ended-task", wrong: onError("CancelTask", -32001) },
  { check: "cancel-unknown-task", wrong: onError("CancelTask", -32002) },
  { check: "cancel-twice", wrong: secondTime("CancelTask", -32603) },
  {
    check: "ended-task-stays",
    wrong: onResult("GetTask", (task) => set(task, "status.timestamp", new Date(++lastTime).toISOString())),
  },

  // Lists.
  { check: "list-pages", wrong: onResult("ListTasks", (page) => set(page, "nextPageToken", "")) },
  {
    check: "list-order",
    wrong: onResult("ListTasks", (page) => {
      for (const [at, task] of list(page, "tasks").entries()) set(task, "status.timestamp", new Date(at).toISOString());
    }),
  },
  { check: "list-members", wrong: onResult("ListTasks", (page) => drop(page, "nextPageToken")) },
  {
    check: "list-artifacts",
    wrong: onResult("ListTasks", (page) => {
      for (const task of list(page, "tasks")) set(task, "artifacts", []);
    }),
  },
  { check: "list-nonsense", wrong: onParams("ListTasks", (params) => set(params, "historyLength", 0)) },
  {
    check: "list-since",
    wrong: onParams("ListTasks", (params) => {
      const time = String(get(params, "statusTimestampAfter"));
      set(params, "statusTimestampAfter", new Date(Date.parse(time) + 1).toISOString());
    }),
  },
  { check: "list-filters", wrong: onParams("ListTasks", (params) => drop(params, "contextId")) },

  // Content.
  {
    check: "empty-content",
    wrong: onResult("GetTask", (task) => {
      for (const said of list(task, "history"))
        set(
          said,
          "parts",
          list(said, "parts").filter((part) => get(part, "text") !== ""),
        );
    }),
  },
  {
    check: "bytes-come-back",
    wrong: onResult("GetTask", (task) => {
      for (const said of list(task, "history")) set(said, "parts.1.raw", "AAECAw==");
    }),
  },

  // Streams.
  { check: "streaming-not-offered", stage: "silent", wrong: onError("SendStreamingMessage", -32603) },
  { check: "stream-opens", wrong: refusing("SendStreamingMessage", -32603) },
  { check: "stream-of-message", wrong: eventsOf((event) => [event, event]) },
  { check: "stream-of-task", wrong: eventsOf((event, at) => (at === 0 ? [] : [event])) },
  {
    check: "stream-adds-up",
    wrong: eventsOf((event) => (kindOf(event) === "artifactUpdate" ? [] : [event])),
  },
  { check: "subscribe-begins-with-task", wrong: eventsOf((event, at) => (at === 0 ? [statusIn(event)] : [event])) },
  { check: "subscribe-ends-with-task", wrong: eventsOf((event) => (isEnd(event) ? [END] : [event])) },
  { check: "subscribe-to-ended-task", wrong: onError("SubscribeToTask", -32001) },
  { check: "subscribe-to-unknown-task", wrong: onError("SubscribeToTask", -32004) },
  {
    check: "streams-agree",
    wrong: eventsOf((event, _at, stream) => {
      if (stream === 1) drop(event, "result.statusUpdate.status.timestamp");
      return [event];
    }),
  },
  {
    check: "streams-are-apart",
    wrong: eventsOf((event, at) => (at > 0 ? [END] : [event])),
  },
  { check: "client-leaves", wrong: onResult("GetTask", (task) => set(task, "status.state", "TASK_STATE_CANCELED")) },
  {
    check: "streams-stay-for-authentication",
    wrong: eventsOf((event) => (stateOf(event) === "TASK_STATE_AUTH_REQUIRED" ? [event, END] : [event])),
  },

  // Push notifications.
  { check: "push-create", wrong: onResult("CreateTaskPushNotificationConfig", (config) => drop(config, "id")) },
  {
    check: "push-create-for-unknown-task",
    wrong: answering("CreateTaskPushNotificationConfig", { id: "x", url: "https://example.com" }),
  },
  {
    check: "push-get",
    wrong: onResult("GetTaskPushNotificationConfig", (config) => set(config, "url", "https://x.example")),
  },
  {
    check: "push-get-unknown",
    wrong: answering("GetTaskPushNotificationConfig", { id: "x", url: "https://x.example" }),
  },
  { check: "push-list", wrong: onResult("ListTaskPushNotificationConfigs", (page) => set(page, "configs", [])) },
  { check: "push-delete", wrong: answering("DeleteTaskPushNotificationConfig", null) },
  { check: "push-delete-twice", wrong: secondTime("DeleteTaskPushNotificationConfig", -32001) },
  { check: "push-inline", wrong: onParams("SendMessage", (params) => drop(params, "configuration")) },
  { check: "push-delivered", wrong: { deliver: () => undefined } },
  {
    check: "push-credentials",
    wrong: { deliver: ({ headers: { authorization: _, ...headers }, body }) => ({ headers, body }) },
  },
  {
    check: "push-body",
    wrong: { deliver: ({ headers, body }) => ({ headers, body: JSON.stringify(get(JSON.parse(body), "task")) }) },
  },
  {
    check: "push-headers",
    wrong: { deliver: ({ headers, body }) => ({ headers: { ...headers, "content-type": "text/plain" }, body }) },
  },
  {
    check: "push-to-private-address",
    plays: refusing("CreateTaskPushNotificationConfig", -32602),
    wrong: answering("CreateTaskPushNotificationConfig", { id: "x", url: "http://169.254.169.254/" }),
  },
  {
    check: "push-not-offered",
    plays: {
      ...onCard(({ body }) => set(body, "capabilities.pushNotifications", false)),
      ...forPush(() => ({ error: { code: -32003, message: "no" } })),
    },
    wrong: {
      ...onCard(({ body }) => set(body, "capabilities.pushNotifications", false)),
      ...forPush((method) => ({ error: { code: method.startsWith("List") ? -32601 : -32003, message: "no" } })),
    },
  },

  // Callers.
  { check: "extended-card-not-offered", wrong: onError("GetExtendedAgentCard", -32007) },
  { check: "extended-card", stage: "guarded", wrong: answering("GetExtendedAgentCard", {}) },
  {
    check: "extended-card-for-nobody",
    stage: "guarded",
    wrong: onHeader((headers) => set(headers, "authorization", "Bearer alice")),
  },
  {
    check: "credentials-are-asked-for",
    stage: "guarded",
    plays: { ...asking(), request: (request) => withoutCredentials(request) },
    wrong: asking(),
  },
  {
    check: "tasks-of-others",
    stage: "guarded",
    wrong: onHeader((headers) => set(headers, "authorization", "Bearer alice")),
  },
  {
    check: "lists-of-others",
    stage: "guarded",
    wrong: onHeader((headers) => set(headers, "authorization", "Bearer alice")),
  },
  {
    check: "other-tenant",
    plays: { ...tenanted(), ...refusing("GetTask", -32001, isOtherTenant) },
    wrong: { ...tenanted(), request: (request) => withoutTenant(request) },
  },

  // Envelopes.
  { check: "no-json", wrong: { answer: ({ body }) => set(body, "error.code", -32600) } },
  { check: "no-request", wrong: { answer: ({ body }) => set(body, "error.code", -32602) } },
  { check: "no-method", wrong: { answer: ({ body }) => set(body, "error.code", -32600) } },
  { check: "no-params", wrong: { answer: ({ body }) => set(body, "error.code", -32001) } },
  {
    check: "envelope-errors-are-responses",
    wrong: { answer: (answer) => set(answer, "status", get(answer.body, "id") === null ? 400 : answer.status) },
  },
  {
    check: "ids-come-back",
    wrong: {
      answer: ({ body }) => {
        if (get(body, "id") === 0) set(body, "id", null);
      },
    },
  },
  {
    check: "no-route",
    binding: "HTTP+JSON",
    wrong: { answer: (answer, { path }) => set(answer, "status", path.includes("conformance") ? 200 : answer.status) },
  },
  {
    check: "no-json-body",
    binding: "HTTP+JSON",
    wrong: { answer: (answer, { path }) => set(answer, "status", path.includes("message:send") ? 500 : answer.status) },
  },

  // What only 0.3 has.
  {
    check: "old-subscribe-verbs",
    binding: "HTTP+JSON",
    version: "0.3",
    wrong: {
      request: ({ method, path }) =>
        method === "GET" && path.includes(":subscribe") ? { status: 405, headers: {}, body: "" } : undefined,
    },
  },
  {
    check: "old-push-bodies",
    binding: "HTTP+JSON",
    version: "0.3",
    wrong: {
      request: ({ body }) => (get(body, "parent") === undefined ? undefined : { status: 400, headers: {}, body: "" }),
    },
  },
  {
    check: "old-objects-have-kinds",
    version: "0.3",
    wrong: onResult("message/send", (result) => set(result, "kind", "job")),
  },

  // What is judged in passing.
  { check: "tasks-complete", after: ["get-task"], wrong: onResult("GetTask", (task) => drop(task, "status")) },
  {
    check: "messages-complete",
    after: ["get-task"],
    wrong: onResult("GetTask", (task) => drop(task, "history.0.messageId")),
  },
  {
    check: "artifacts-complete",
    after: ["send-answer-is-complete"],
    wrong: onResult("GetTask", (task) => drop(task, "artifacts.0.artifactId")),
  },
  {
    check: "parts-of-one-kind",
    after: ["get-task"],
    wrong: onResult("GetTask", (task) => set(task, "history.0.parts.0.url", "https://example.com")),
  },
  {
    check: "names-in-camel-case",
    after: ["get-task"],
    wrong: onResult("GetTask", (task) => set(task, "context_id", "c")),
  },
  {
    check: "states-and-roles-spelled",
    after: ["get-task"],
    wrong: onResult("GetTask", (task) => set(task, "history.0.role", "user")),
  },
  {
    check: "times-in-utc",
    after: ["get-task"],
    wrong: onResult("GetTask", (task) => set(task, "status.timestamp", "2026-01-01T00:00:00+02:00")),
  },
  { check: "no-discriminators", after: ["get-task"], wrong: onResult("GetTask", (task) => set(task, "kind", "task")) },
  {
    check: "kinds-told",
    version: "0.3",
    after: ["get-task"],
    wrong: onResult("tasks/get", (task) => drop(task, "history.0.kind")),
  },
  {
    check: "final-told",
    version: "0.3",
    after: ["stream-opens"],
    wrong: eventsOf((event) => {
      drop(event, "result.final");
      return [event];
    }),
  },
  {
    check: "events-framed",
    after: ["stream-opens"],
    wrong: eventsOf((event) => {
      set(event, "id", "another");
      return [event];
    }),
  },
  {
    check: "responses-formed",
    after: ["get-task"],
    wrong: { answer: ({ body }) => drop(body, "jsonrpc") },
  },
  {
    check: "responses-are-json",
    after: ["get-task"],
    wrong: {
      answer: ({ headers }, request) =>
        set(headers, "content-type", isCard(request) ? "application/json" : "text/plain"),
    },
  },
  {
    check: "answers-are-a2a-json",
    binding: "HTTP+JSON",
    after: ["get-task"],
    wrong: { answer: ({ headers }) => set(headers, "content-type", "application/json") },
  },
  {
    check: "errors-have-their-code",
    binding: "HTTP+JSON",
    after: ["get-unknown-task"],
    wrong: {
      answer: (answer) => {
        if (answer.status === 404) set(answer, "status", 410);
      },
    },
  },
  {
    check: "error-data-typed",
    after: ["get-unknown-task"],
    wrong: { answer: ({ body }) => drop(body, "error.data.0.@type") },
  },
  {
    check: "error-data-names-reason",
    after: ["get-unknown-task"],
    wrong: { answer: ({ body }) => drop(body, "error.data") },
  },
  {
    check: "error-bodies-formed",
    binding: "HTTP+JSON",
    after: ["get-unknown-task"],
    wrong: { answer: ({ body }) => drop(body, "error.status") },
  },
  {
    check: "error-bodies-name-reason",
    binding: "HTTP+JSON",
    after: ["get-unknown-task"],
    wrong: { answer: ({ body }) => drop(body, "error.details") },
  },
];

function signature(header: object): object {
  return { protected: Buffer.from(JSON.stringify(header)).toString("base64url"), signature: "c2lnbmF0dXJl" };
}

/** The second call of a method fails. */
function secondTime(method: string, code: number): Spoiler {
  let calls = 0;
  return {
    answer: (answer, request) => {
      if (methodOf(request) !== method) return;
      calls += 1;
      if (calls === 2) set(answer, "body", envelope(request, { error: { code, message: "no" } }));
    },
  };
}

function statusIn(event: unknown): unknown {
  const { contextId, id, status } = Object(get(event, "result.task"));
  return { ...Object(event), result: { statusUpdate: { taskId: id, contextId, status } } };
}

function forPush(content: (method: string) => object): Spoiler {
  return {
    request: (request) => {
      const method = String(methodOf(request));
      if (!method.includes("PushNotification")) return undefined;
      return { status: 200, headers: { "content-type": "application/json" }, body: envelope(request, content(method)) };
    },
  };
}

function asking(): Spoiler {
  const securityRequirements = [{ schemes: { key: { list: [] } } }];
  return onCard(({ body }) => set(body, "securityRequirements", securityRequirements));
}

function withoutCredentials(request: SeenRequest): SpoiledAnswer | undefined {
  if (isCard(request) || request.headers.authorization !== undefined) return undefined;
  const error = { code: -32050, message: "Who are you?" };
  return { status: 401, headers: { "content-type": "application/json" }, body: envelope(request, { error }) };
}

function tenanted(): Spoiler {
  return onCard(({ body }) => {
    for (const entry of list(body, "supportedInterfaces")) set(entry, "tenant", "acme");
  });
}

function isOtherTenant({ body }: SeenRequest): boolean {
  return get(body, "params.tenant") !== "acme";
}

function withoutTenant(request: SeenRequest): undefined {
  drop(request.body, "params.tenant");
}
