/** What agents send in all dialects, with members left out or unknown to this client: it is read, and what is missing is reported. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { a2aV1 } from "../../src/core/dialects/a2a-v1/index.ts";
import { toBytes as toBytesV1 } from "../../src/core/dialects/a2a-v1/proto/schema.ts";
import { a2aV01 } from "../../src/core/dialects/a2a-v01/index.ts";
import { a2aV03 } from "../../src/core/dialects/a2a-v03/index.ts";
import { toBytes as toBytesV03 } from "../../src/core/dialects/a2a-v03/proto/schema.ts";
import type { CallableDialect, ExchangeCalling, RpcCalling } from "../../src/core/dialects/contract.ts";
import { tasksRest } from "../../src/core/dialects/tasks-rest/index.ts";
import { isObject, type JsonObject, type JsonValue } from "../../src/core/model/json.ts";
import type { Lossy } from "../../src/core/model/loss.ts";

const METADATA = { note: { deep: [1] } };
const FILE = { bytes: "aGk=", mimeType: "text/plain", name: "a.txt" };

const MESSAGE_V1 = {
  messageId: "m",
  contextId: "c",
  taskId: "t",
  role: "ROLE_AGENT",
  parts: [
    { text: "said", metadata: METADATA },
    { raw: "aGk=", filename: "a.txt", mediaType: "text/plain" },
    { url: "https://files.example/a" },
    { data: { a: 1 } },
  ],
  metadata: METADATA,
  extensions: ["urn:x"],
  referenceTaskIds: ["r"],
};
const ARTIFACT_V1 = { ...pick(MESSAGE_V1, "parts", "metadata"), artifactId: "a", name: "n", description: "d" };
const STATUS_V1 = { state: "TASK_STATE_WORKING", message: MESSAGE_V1, timestamp: "2026-01-02T03:04:05.678Z" };
const TASK_V1 = {
  id: "t",
  contextId: "c",
  status: STATUS_V1,
  artifacts: [ARTIFACT_V1, { ...ARTIFACT_V1, artifactId: "b" }],
  history: [{ ...MESSAGE_V1, messageId: "q", role: "ROLE_USER" }],
  metadata: METADATA,
};
const UPDATE = { taskId: "t", contextId: "c", metadata: METADATA };
const EVENTS_V1: readonly JsonObject[] = [
  { task: TASK_V1 },
  { message: MESSAGE_V1 },
  { statusUpdate: { ...UPDATE, status: STATUS_V1 } },
  { artifactUpdate: { ...UPDATE, artifact: ARTIFACT_V1, append: true, lastChunk: true } },
];

const MESSAGE_V03 = {
  ...MESSAGE_V1,
  kind: "message",
  role: "agent",
  parts: [
    { kind: "text", text: "said", metadata: METADATA },
    { kind: "file", file: FILE },
    { kind: "file", file: { uri: "https://files.example/a" } },
    { kind: "data", data: { a: 1 } },
  ],
};
const ARTIFACT_V03 = { ...ARTIFACT_V1, parts: MESSAGE_V03.parts };
const STATUS_V03 = { ...STATUS_V1, state: "working", message: MESSAGE_V03 };
const TASK_V03 = { ...TASK_V1, kind: "task", status: STATUS_V03, artifacts: [ARTIFACT_V03], history: [MESSAGE_V03] };
const EVENTS_V03: readonly JsonObject[] = [
  TASK_V03,
  MESSAGE_V03,
  { ...UPDATE, kind: "status-update", status: STATUS_V03, final: false },
  { ...UPDATE, kind: "artifact-update", artifact: ARTIFACT_V03, append: true, lastChunk: true },
];

const MESSAGE_PROTO = {
  ...pick(MESSAGE_V1, "messageId", "contextId", "taskId", "role", "metadata", "extensions"),
  content: [
    { text: "said", metadata: METADATA },
    { file: { fileWithBytes: "aGk=", mimeType: "text/plain", name: "a.txt" } },
    { data: { data: { a: 1 } } },
  ],
};
const ARTIFACT_PROTO = { ...ARTIFACT_V1, parts: MESSAGE_PROTO.content };
const STATUS_PROTO = { ...STATUS_V1, message: MESSAGE_PROTO };
const TASK_PROTO = { ...TASK_V1, status: STATUS_PROTO, artifacts: [ARTIFACT_PROTO], history: [MESSAGE_PROTO] };
const EVENTS_PROTO: readonly JsonObject[] = [
  { task: TASK_PROTO },
  { message: MESSAGE_PROTO },
  { statusUpdate: { ...UPDATE, status: STATUS_PROTO, final: true } },
  { artifactUpdate: { ...UPDATE, artifact: ARTIFACT_PROTO, append: true } },
];

const MESSAGE_V01 = {
  role: "agent",
  parts: [
    { type: "text", text: "said", metadata: METADATA },
    { type: "file", file: FILE },
    { type: "data", data: { a: 1 } },
  ],
  metadata: METADATA,
};
const STATUS_V01 = { ...STATUS_V1, state: "working", message: MESSAGE_V01 };
const ARTIFACT_V01 = { ...pick(ARTIFACT_V1, "name", "description", "metadata"), parts: MESSAGE_V01.parts, index: 0 };
const TASK_V01 = {
  id: "t",
  sessionId: "c",
  status: STATUS_V01,
  artifacts: [ARTIFACT_V01],
  history: [MESSAGE_V01],
  metadata: METADATA,
};
const EVENTS_V01: readonly JsonObject[] = [
  { id: "t", status: STATUS_V01, final: false, metadata: METADATA },
  { id: "t", artifact: { ...ARTIFACT_V01, append: true, lastChunk: true }, metadata: METADATA },
];
const TASK_REST = { ...pick(TASK_V01, "id", "status", "metadata"), contextId: "c", artifacts: [ARTIFACT_V01] };

/** How one binding is called: answers to `get`, and events of a stream. */
interface Sample {
  readonly name: string;
  readonly task: JsonObject;
  readonly events: readonly JsonObject[];
  readonly get: (task: JsonValue) => Lossy<unknown>;
  readonly frame: (event: JsonValue) => Lossy<unknown>;
}

const SAMPLES: readonly Sample[] = [
  exchange(a2aV1, "JSONRPC", TASK_V1, EVENTS_V1),
  exchange(a2aV1, "HTTP+JSON", TASK_V1, EVENTS_V1),
  rpc(a2aV1, TASK_V1, EVENTS_V1, (name, value) => toBytesV1(name, value)),
  exchange(a2aV03, "JSONRPC", TASK_V03, EVENTS_V03),
  exchange(a2aV03, "HTTP+JSON", TASK_PROTO, EVENTS_PROTO),
  rpc(a2aV03, TASK_PROTO, EVENTS_PROTO, (name, value) => toBytesV03(name, value)),
  exchange(a2aV01, "JSONRPC", TASK_V01, EVENTS_V01),
  exchange(tasksRest, undefined, TASK_REST, [{ task: TASK_REST }, { ...UPDATE, artifact: ARTIFACT_V01 }]),
];

const WRONG = new Set(["messageId", "artifactId", "role", "state"]);

/** Content, without which there is nothing to read, and the names of events. */
const NEEDED = new Set(["status", "artifact", "task", "message", "statusUpdate", "artifactUpdate"]);

describe.each(SAMPLES)("$name", (sample) => {
  const read = (at: number, value: JsonValue) => (at < 0 ? sample.get(value) : sample.frame(value));
  const whole: readonly (readonly [number, JsonObject])[] = [
    [-1, sample.task],
    ...sample.events.map((event, at) => [at, event] as const),
  ];

  it("reads what is whole without remarks", () => {
    for (const [at, value] of whole) expect(read(at, value).losses).toEqual([]);
  });

  it("reads any of it without one of its members, twice the same", () => {
    for (const [at, value] of whole) {
      for (const path of pathsOf(value)) {
        const less = without(value, [path]);
        const first = read(at, less);
        expect([path, read(at, less).value]).toEqual([path, first.value]);
      }
    }
  });

  it("keeps what has an id, a role or a state of the wrong type", () => {
    if (sample.name.endsWith("GRPC")) return;
    const wrong = (value: JsonValue, key = ""): JsonValue => {
      if (Array.isArray(value)) return value.map((item) => wrong(item));
      if (!isObject(value)) return WRONG.has(key) ? 7 : value;
      return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, wrong(member ?? null, name)]));
    };
    const count = (task: unknown) => (task as { artifacts: unknown[] }).artifacts.length;
    const { losses, value } = sample.get(wrong(sample.task));
    expect(count(value)).toBe(count(sample.task));
    expect(losses.length).toBeGreaterThan(0);
  });

  it("reads any of it without several members, with others that it does not know", () => {
    const any = fc.constantFrom(...whole).chain(([at, value]) =>
      fc.record({
        at: fc.constant(at),
        value: fc.constant(value),
        left: fc.uniqueArray(fc.constantFrom(...pathsOf(value)), { maxLength: 4, selector: (path) => path.join("/") }),
        unknown: fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<JsonValue>,
      }),
    );
    fc.assert(
      fc.property(any, ({ at, left, unknown, value }) => {
        // A message of which nothing is left is none.
        fc.pre(left.every((path) => !isRequiredOfMessage(path)) || left.length === 1);
        read(at, addEverywhere(without(value, left), unknown));
      }),
      { numRuns: 300 },
    );
  });

  it("takes a state that it does not know for unspecified, and says which it was", () => {
    const { task } = sample;
    const known = sample.get({ ...task, status: { ...(task.status as JsonObject), state: "TASK_STATE_PAUSED" } });
    expect(known.value).toMatchObject({ id: "t", status: { state: "TASK_STATE_UNSPECIFIED" } });
    if (!sample.name.endsWith("GRPC")) {
      expect(known.losses).toMatchObject([{ kind: "filled", path: 'status.state ("TASK_STATE_PAUSED")' }]);
    }
  });
});

it("an enum number of a later version is read, over gRPC", () => {
  const [v1] = a2aV1.calling.filter((calling): calling is RpcCalling => calling.carrier === "rpc");
  const bytes = toBytesV1("Task", { ...TASK_V1, status: { state: "TASK_STATE_WORKING" } });
  // Field 3 is the status, of two bytes: field 1 of it is the state.
  const at = Buffer.from(bytes).indexOf(Buffer.from([0x1a, 2, 8, 2]));
  bytes[at + 3] = 77;
  expect(v1?.decode("get", bytes)).toMatchObject({
    value: { status: { state: "TASK_STATE_UNSPECIFIED" } },
    losses: [{ kind: "filled", path: "status.state (77)" }],
  });
});

it("cards are read without any one of their members but the addresses", () => {
  const skill = { id: "s", name: "S", description: "d", tags: ["t"], examples: ["e"] };
  const common = {
    name: "Agent",
    description: "d",
    version: "1",
    provider: { organization: "O", url: "https://o.example" },
    capabilities: { streaming: true, pushNotifications: false, extensions: [{ uri: "urn:x", required: true }] },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [skill],
  };
  const url = "https://a.example/";
  const cards: readonly (readonly [CallableDialect, JsonObject])[] = [
    [a2aV1, { ...common, supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }] }],
    [a2aV03, { ...common, url, preferredTransport: "JSONRPC", protocolVersion: "0.3.0" }],
    [a2aV01, { ...common, url, authentication: { schemes: ["bearer"] } }],
  ];
  for (const [dialect, card] of cards) {
    for (const path of pathsOf(card).filter(([first]) => first !== "supportedInterfaces" && first !== "url")) {
      expect([dialect.name, path, dialect.readCard?.(without(card, [path]), url)?.card]).toEqual([
        dialect.name,
        path,
        expect.objectContaining({ supportedInterfaces: [expect.anything()] }),
      ]);
    }
  }
});

function exchange(
  dialect: CallableDialect,
  binding: string | undefined,
  task: JsonObject,
  events: readonly JsonObject[],
): Sample {
  const calling = dialect.calling.find(
    (one): one is ExchangeCalling => one.carrier === "exchange" && one.binding === (binding ?? one.binding),
  ) as ExchangeCalling;
  const wrap = (result: JsonValue) => JSON.stringify(calling.binding === "JSONRPC" ? { id: 1, result } : result);
  return {
    name: `${dialect.name} ${calling.binding}`,
    task,
    events,
    get: (value) => calling.decode("get", { status: 200, contentType: "application/json", text: wrap(value) }),
    frame: (event) => {
      const { losses, value } = calling.decodeFrame({ data: wrap(event), event: "message", id: undefined });
      expect(value).toBeDefined();
      return { losses, value: value?.event };
    },
  };
}

function rpc(
  dialect: CallableDialect,
  task: JsonObject,
  events: readonly JsonObject[],
  toBytes: (name: "Task" | "StreamResponse", value: object) => Uint8Array,
): Sample {
  const calling = dialect.calling.find((one): one is RpcCalling => one.carrier === "rpc") as RpcCalling;
  return {
    name: `${dialect.name} GRPC`,
    task,
    events,
    get: (value) => calling.decode("get", toBytes("Task", value as JsonObject)),
    frame: (event) => {
      const { losses, value } = calling.decodeFrame(toBytes("StreamResponse", event as JsonObject));
      return { losses, value: value?.event };
    },
  };
}

type Path = readonly (string | number)[];

/** Of all members that can be left out. */
function pathsOf(value: JsonValue, at: Path = []): Path[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => pathsOf(item, [...at, index]));
  if (!isObject(value) || at.includes("metadata")) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const path = [...at, name];
    return [...(NEEDED.has(name) ? [] : [path]), ...pathsOf(member ?? null, path)];
  });
}

const REQUIRED_OF_MESSAGE = new Set<unknown>(["kind", "messageId", "role", "parts", "content", "id", "artifactId"]);

function isRequiredOfMessage(path: Path): boolean {
  return REQUIRED_OF_MESSAGE.has(path.at(-1));
}

function without(value: JsonObject, paths: readonly Path[]): JsonObject {
  const copy = structuredClone(value) as Record<string, JsonValue>;
  for (const path of paths) {
    let inner: unknown = copy;
    for (const step of path.slice(0, -1)) inner = (inner as Record<string, unknown> | undefined)?.[step as string];
    if (inner !== undefined) delete (inner as Record<string, unknown>)[path.at(-1) as string];
  }
  return copy;
}

function addEverywhere(value: JsonValue, unknown: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map((item) => addEverywhere(item, unknown));
  if (!isObject(value)) return value;
  const members = Object.entries(value).map(([name, member]) => [name, addEverywhere(member ?? null, unknown)]);
  return { ...Object.fromEntries(members), addedLater: unknown };
}

function pick<T extends object, K extends keyof T>(value: T, ...names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, value[name]])) as Pick<T, K>;
}
