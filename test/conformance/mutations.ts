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

/** By the name of the check: a mistake that it must notice, or one with what it takes to see it. */
const MISTAKES: Readonly<Record<string, Spoiler | Omit<Mutation, "check">>> = {
  // The card.
  "card-fetched": onCard(({ headers }) => set(headers, "content-type", "text/html")),
  "card-members": onCard(({ body }) => drop(body, "skills.0.tags")),
  "card-has-interface": onCard(({ body }) => set(body, "supportedInterfaces", [])),
  "card-interfaces-complete": onCard(({ body }) => drop(body, "supportedInterfaces.1.url")),
  "card-proto-json": onCard(({ body }) => set(body, "securitySchemes", { key: { type: "apiKey" } })),
  "card-cache-control": onCard(({ headers }) => drop(headers, "cache-control")),
  "card-etag": onCard(({ headers }) => drop(headers, "etag")),
  "card-last-modified": onCard(({ headers }) => drop(headers, "last-modified")),
  "card-signature-header": {
    plays: onCard(({ body }) => set(body, "signatures", [signature({ alg: "ES256", kid: "k", typ: "JOSE" })])),
    wrong: onCard(({ body }) => set(body, "signatures", [signature({ alg: "ES256" })])),
  },

  // Service parameters.
  "interface-answers": onError("GetTask", -32603),
  "version-not-spoken": onHeader((headers) => set(headers, "a2a-version", "1.0")),
  "version-absent": refusing("ListTasks", -32603, ({ headers }) => !headers["a2a-version"]),
  "version-with-patch": onHeader((headers) => {
    if (headers["a2a-version"] === "1.0.7") headers["a2a-version"] = "99.0";
  }),
  "parameter-names-without-case": onHeader((headers, { rawNames }) => {
    if (!rawNames.includes("A2A-Version")) set(headers, "a2a-version", "99.0");
  }),
  "extensions-unknown": {
    answer: ({ headers }, request) => set(headers, "a2a-extensions", request.headers["a2a-extensions"] ?? ""),
  },
  "extension-required": {
    stage: "strict",
    wrong: onHeader((headers) => set(headers, "a2a-extensions", EXTENSION)),
  },

  // Sending.
  "send-answer": onResult("SendMessage", (result) => set(result, "message", { messageId: "m" })),
  "send-waits": onParams("SendMessage", (params) => set(params, "configuration", { returnImmediately: true })),
  "send-returns-immediately": onParams("SendMessage", (params) => drop(params, "configuration")),
  "send-answer-is-complete": onResult("SendMessage", (result) => drop(result, "task.artifacts")),
  "send-returns-when-interrupted": {
    request: (request) => (methodOf(request) === "SendMessage" ? "silence" : undefined),
  },
  "send-incomplete": onParams("SendMessage", (params) => set(params, "message.role", "ROLE_USER")),
  "send-without-parts": onParams("SendMessage", (params) => set(params, "message.parts", text("x"))),
  "send-unknown-members": refusing("SendMessage", -32602),
  "send-to-ended-task": onParams("SendMessage", (params) => drop(params, "message.taskId")),
  "send-foreign-content": onParams("SendMessage", (params) => set(params, "message.parts", text("x"))),
  "send-to-unknown-task": onParams("SendMessage", (params) => drop(params, "message.taskId")),
  "task-ids-are-new": onResult("SendMessage", (result) => set(result, "task.id", "same")),
  "context-generated": onResult("SendMessage", (result) => drop(result, "task.contextId")),
  "context-of-client": onResult("SendMessage", (result) => set(result, "task.contextId", "another")),
  "context-of-task": onResult("SendMessage", (result, request) => {
    if (get(request.body, "params.message.taskId") !== undefined) set(result, "task.contextId", "another");
  }),
  "context-contradicts-task": onParams("SendMessage", (params) => drop(params, "message.contextId")),
  "demand-for-authentication": onResult("SendMessage", (result) => drop(result, "task.status.message")),

  // Tasks.
  "get-task": onResult("GetTask", (task) => set(task, "id", "another")),
  "get-unknown-task": onError("GetTask", -32602),
  "history-bounded": onParams("GetTask", (params) => drop(params, "historyLength")),
  "history-none": onParams("GetTask", (params) => drop(params, "historyLength")),
  "history-none-in-answer": onParams("SendMessage", (params) => drop(params, "configuration")),
  "history-in-order": onResult("GetTask", (task) => list(task, "history").reverse()),
  "cancel-task": onResult("CancelTask", (task) => set(task, "id", "another")),
  "cancel-ended-task": onError("CancelTask", -32001),
  "cancel-unknown-task": onError("CancelTask", -32002),
  "cancel-twice": secondTime("CancelTask", -32603),
  "ended-task-stays": onResult("GetTask", (task) => set(task, "status.timestamp", new Date(++lastTime).toISOString())),

  // Lists.
  "list-pages": onResult("ListTasks", (page) => set(page, "nextPageToken", "")),
  "list-order": onResult("ListTasks", (page) => {
    for (const [at, task] of list(page, "tasks").entries()) set(task, "status.timestamp", new Date(at).toISOString());
  }),
  "list-members": onResult("ListTasks", (page) => drop(page, "nextPageToken")),
  "list-artifacts": onResult("ListTasks", (page) => {
    for (const task of list(page, "tasks")) set(task, "artifacts", []);
  }),
  "list-nonsense": onParams("ListTasks", (params) => set(params, "historyLength", 0)),
  "list-since": onParams("ListTasks", (params) => {
    const time = String(get(params, "statusTimestampAfter"));
    set(params, "statusTimestampAfter", new Date(Date.parse(time) + 1).toISOString());
  }),
  "list-filters": onParams("ListTasks", (params) => drop(params, "contextId")),

  // Content.
  "empty-content": onResult("GetTask", (task) => {
    for (const said of list(task, "history"))
      set(
        said,
        "parts",
        list(said, "parts").filter((part) => get(part, "text") !== ""),
      );
  }),
  "bytes-come-back": onResult("GetTask", (task) => {
    for (const said of list(task, "history")) set(said, "parts.1.raw", "AAECAw==");
  }),

  // Streams.
  "streaming-not-offered": { stage: "silent", wrong: onError("SendStreamingMessage", -32603) },
  "stream-opens": refusing("SendStreamingMessage", -32603),
  "stream-of-message": eventsOf((event) => [event, event]),
  "stream-of-task": eventsOf((event, at) => (at === 0 ? [] : [event])),
  "stream-adds-up": eventsOf((event) => (kindOf(event) === "artifactUpdate" ? [] : [event])),
  "subscribe-begins-with-task": eventsOf((event, at) => (at === 0 ? [statusIn(event)] : [event])),
  "subscribe-ends-with-task": eventsOf((event) => (isEnd(event) ? [END] : [event])),
  "subscribe-to-ended-task": onError("SubscribeToTask", -32001),
  "subscribe-to-unknown-task": onError("SubscribeToTask", -32004),
  "streams-agree": eventsOf((event, _at, stream) => {
    if (stream === 1) drop(event, "result.statusUpdate.status.timestamp");
    return [event];
  }),
  "streams-are-apart": eventsOf((event, at) => (at > 0 ? [END] : [event])),
  "client-leaves": onResult("GetTask", (task) => set(task, "status.state", "TASK_STATE_CANCELED")),
  "streams-stay-for-authentication": eventsOf((event) =>
    stateOf(event) === "TASK_STATE_AUTH_REQUIRED" ? [event, END] : [event],
  ),

  // Push notifications.
  "push-create": onResult("CreateTaskPushNotificationConfig", (config) => drop(config, "id")),
  "push-create-for-unknown-task": answering("CreateTaskPushNotificationConfig", {
    id: "x",
    url: "https://example.com",
  }),
  "push-get": onResult("GetTaskPushNotificationConfig", (config) => set(config, "url", "https://x.example")),
  "push-get-unknown": answering("GetTaskPushNotificationConfig", { id: "x", url: "https://x.example" }),
  "push-list": onResult("ListTaskPushNotificationConfigs", (page) => set(page, "configs", [])),
  "push-delete": answering("DeleteTaskPushNotificationConfig", null),
  "push-delete-twice": secondTime("DeleteTaskPushNotificationConfig", -32001),
  "push-inline": onParams("SendMessage", (params) => drop(params, "configuration")),
  "push-delivered": { deliver: () => undefined },
  "push-credentials": { deliver: ({ headers: { authorization: _, ...headers }, body }) => ({ headers, body }) },
  "push-body": { deliver: ({ headers, body }) => ({ headers, body: JSON.stringify(get(JSON.parse(body), "task")) }) },
  "push-headers": { deliver: ({ headers, body }) => ({ headers: { ...headers, "content-type": "text/plain" }, body }) },
  "push-to-private-address": {
    plays: refusing("CreateTaskPushNotificationConfig", -32602),
    wrong: answering("CreateTaskPushNotificationConfig", { id: "x", url: "http://169.254.169.254/" }),
  },
  "push-not-offered": {
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
  "extended-card-not-offered": onError("GetExtendedAgentCard", -32007),
  "extended-card": { stage: "guarded", wrong: answering("GetExtendedAgentCard", {}) },
  "extended-card-for-nobody": {
    stage: "guarded",
    wrong: onHeader((headers) => set(headers, "authorization", "Bearer alice")),
  },
  "credentials-are-asked-for": {
    stage: "guarded",
    plays: { ...asking(), request: (request) => withoutCredentials(request) },
    wrong: asking(),
  },
  "tasks-of-others": {
    stage: "guarded",
    wrong: onHeader((headers) => set(headers, "authorization", "Bearer alice")),
  },
  "lists-of-others": {
    stage: "guarded",
    wrong: onHeader((headers) => set(headers, "authorization", "Bearer alice")),
  },
  "other-tenant": {
    plays: { ...tenanted(), ...refusing("GetTask", -32001, isOtherTenant) },
    wrong: { ...tenanted(), request: (request) => withoutTenant(request) },
  },

  // Envelopes.
  "no-json": { answer: ({ body }) => set(body, "error.code", -32600) },
  "no-request": { answer: ({ body }) => set(body, "error.code", -32602) },
  "no-method": { answer: ({ body }) => set(body, "error.code", -32600) },
  "no-params": { answer: ({ body }) => set(body, "error.code", -32001) },
  "envelope-errors-are-responses": {
    answer: (answer) => set(answer, "status", get(answer.body, "id") === null ? 400 : answer.status),
  },
  "ids-come-back": {
    answer: ({ body }) => {
      if (get(body, "id") === 0) set(body, "id", null);
    },
  },
  "no-route": {
    binding: "HTTP+JSON",
    wrong: { answer: (answer, { path }) => set(answer, "status", path.includes("conformance") ? 200 : answer.status) },
  },
  "no-json-body": {
    binding: "HTTP+JSON",
    wrong: { answer: (answer, { path }) => set(answer, "status", path.includes("message:send") ? 500 : answer.status) },
  },

  // What only 0.3 has.
  "old-subscribe-verbs": {
    binding: "HTTP+JSON",
    version: "0.3",
    wrong: {
      request: ({ method, path }) =>
        method === "GET" && path.includes(":subscribe") ? { status: 405, headers: {}, body: "" } : undefined,
    },
  },
  "old-push-bodies": {
    binding: "HTTP+JSON",
    version: "0.3",
    wrong: {
      request: ({ body }) => (get(body, "parent") === undefined ? undefined : { status: 400, headers: {}, body: "" }),
    },
  },
  "old-objects-have-kinds": {
    version: "0.3",
    wrong: onResult("message/send", (result) => set(result, "kind", "job")),
  },

  // What is judged in passing.
  "tasks-complete": { after: ["get-task"], wrong: onResult("GetTask", (task) => drop(task, "status")) },
  "messages-complete": {
    after: ["get-task"],
    wrong: onResult("GetTask", (task) => drop(task, "history.0.messageId")),
  },
  "artifacts-complete": {
    after: ["send-answer-is-complete"],
    wrong: onResult("GetTask", (task) => drop(task, "artifacts.0.artifactId")),
  },
  "parts-of-one-kind": {
    after: ["get-task"],
    wrong: onResult("GetTask", (task) => set(task, "history.0.parts.0.url", "https://example.com")),
  },
  "names-in-camel-case": {
    after: ["get-task"],
    wrong: onResult("GetTask", (task) => set(task, "context_id", "c")),
  },
  "states-and-roles-spelled": {
    after: ["get-task"],
    wrong: onResult("GetTask", (task) => set(task, "history.0.role", "user")),
  },
  "times-in-utc": {
    after: ["get-task"],
    wrong: onResult("GetTask", (task) => set(task, "status.timestamp", "2026-01-01T00:00:00+02:00")),
  },
  "no-discriminators": { after: ["get-task"], wrong: onResult("GetTask", (task) => set(task, "kind", "task")) },
  "kinds-told": {
    version: "0.3",
    after: ["get-task"],
    wrong: onResult("tasks/get", (task) => drop(task, "history.0.kind")),
  },
  "final-told": {
    version: "0.3",
    after: ["stream-opens"],
    wrong: eventsOf((event) => {
      drop(event, "result.final");
      return [event];
    }),
  },
  "events-framed": {
    after: ["stream-opens"],
    wrong: eventsOf((event) => {
      set(event, "id", "another");
      return [event];
    }),
  },
  "responses-formed": {
    after: ["get-task"],
    wrong: { answer: ({ body }) => drop(body, "jsonrpc") },
  },
  "responses-are-json": {
    after: ["get-task"],
    wrong: {
      answer: ({ headers }, request) =>
        set(headers, "content-type", isCard(request) ? "application/json" : "text/plain"),
    },
  },
  "answers-are-a2a-json": {
    binding: "HTTP+JSON",
    after: ["get-task"],
    wrong: { answer: ({ headers }) => set(headers, "content-type", "application/json") },
  },
  "errors-have-their-code": {
    binding: "HTTP+JSON",
    after: ["get-unknown-task"],
    wrong: {
      answer: (answer) => {
        if (answer.status === 404) set(answer, "status", 410);
      },
    },
  },
  "error-data-typed": {
    after: ["get-unknown-task"],
    wrong: { answer: ({ body }) => drop(body, "error.data.0.@type") },
  },
  "error-data-names-reason": {
    after: ["get-unknown-task"],
    wrong: { answer: ({ body }) => drop(body, "error.data") },
  },
  "error-bodies-formed": {
    binding: "HTTP+JSON",
    after: ["get-unknown-task"],
    wrong: { answer: ({ body }) => drop(body, "error.status") },
  },
  "error-bodies-name-reason": {
    binding: "HTTP+JSON",
    after: ["get-unknown-task"],
    wrong: { answer: ({ body }) => drop(body, "error.details") },
  },
};

export const MUTATIONS: readonly Mutation[] = Object.entries(MISTAKES).map(([check, mistake]) => ({
  check,
  ...("wrong" in mistake ? mistake : { wrong: mistake }),
}));

const isRest = ({ path }: SeenRequest): boolean => path.includes("/rest/");

/** What is right in one binding and wrong in another. */
export const CROSS_MUTATIONS: Readonly<Record<string, Spoiler>> = {
  "same-operations": {
    request: (request) =>
      isRest(request) && /\/tasks\?/.test(request.path)
        ? { status: 404, headers: { "content-type": "text/plain" }, body: "Not Found" }
        : undefined,
  },
  "same-tasks": {
    answer: ({ body }, request) => {
      if (isRest(request)) drop(body, "artifacts");
    },
  },
  "same-refusals": {
    answer: ({ body }, request) => {
      if (isRest(request) && get(body, "error.details.0.reason") === "TASK_NOT_CANCELABLE")
        set(body, "error.details.0.reason", "UNSUPPORTED_OPERATION");
    },
  },
};

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
