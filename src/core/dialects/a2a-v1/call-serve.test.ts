/** Both halves of the dialect joined: what is called is what is served, what is answered is what is heard. */

import fc from "fast-check";
import { expect, test } from "vitest";
import type { AgentCard } from "../../model/card.ts";
import { ERROR_CODES, ProtocolError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Part } from "../../model/message.ts";
import type { CallContext, Operation, OutcomeOf, Outcomes, StreamFrame } from "../../model/operation.ts";
import { TASK_STATES, type Task } from "../../model/task.ts";
import { type ExchangeCall, type ExchangeReply, type ExchangeRequest, isStreamReply } from "../../wire/exchange.ts";
import { parseJsonRpc } from "../../wire/json-rpc.ts";
import { readSseEvents } from "../../wire/sse.ts";
import type { CallTarget, ExchangeCalling, ServeContext } from "../contract.ts";
import { toolsOf } from "../suite/join.ts";
import { http } from "./bind-http.ts";
import { jsonRpc } from "./bind-json-rpc.ts";
import { httpCalling } from "./call-http.ts";
import { jsonRpcCalling } from "./call-json-rpc.ts";
import type { UnaryKind } from "./decode.ts";

const BASE = "https://x.example/base";
const text = fc.string({ unit: "binary", minLength: 1, maxLength: 20 });
/** Lone surrogates cannot be sent anywhere, least of all in a path. */
const name = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });
/** JSON has no negative zero, and readers leave out keys that would set a prototype. */
const json = fc
  .jsonValue({ maxDepth: 2 })
  .map((value) => JSON.stringify(value))
  .filter((value) => !value.includes("__proto__"))
  .map((value) => JSON.parse(value) as unknown);
const metadata = fc.dictionary(
  name.filter((key) => key !== "__proto__"),
  json,
  {
    maxKeys: 3,
  },
) as fc.Arbitrary<JsonObject>;
const part = fc.oneof(
  fc.record({ text: fc.string() }, { requiredKeys: ["text"] }),
  fc.record({ data: json, metadata }, { requiredKeys: ["data"] }),
  fc.record({ url: fc.webUrl(), filename: name, mediaType: name }, { requiredKeys: ["url"] }),
  fc.base64String({ minLength: 4 }).map((raw) => ({ raw })),
) as fc.Arbitrary<Part>;
const message = fc.record(
  {
    messageId: name,
    role: fc.constantFrom("ROLE_USER" as const, "ROLE_AGENT" as const),
    parts: fc.array(part, { minLength: 1, maxLength: 4 }),
    contextId: name,
    taskId: name,
    metadata,
    extensions: fc.array(name, { minLength: 1, maxLength: 2 }),
  },
  { requiredKeys: ["messageId", "role", "parts"] },
);
const task = fc.record(
  {
    id: name,
    contextId: name,
    status: fc.record({ state: fc.constantFrom(...TASK_STATES), message }, { requiredKeys: ["state"] }),
    history: fc.array(message, { minLength: 1, maxLength: 2 }),
    metadata,
  },
  { requiredKeys: ["id", "contextId", "status"] },
) as fc.Arbitrary<Task>;
const count = fc.integer({ min: 0, max: 1000 });
const sending = {
  message,
  configuration: fc.record(
    {
      historyLength: count,
      returnImmediately: fc.constant(true),
      acceptedOutputModes: fc.array(name, { minLength: 1, maxLength: 2 }),
    },
    { requiredKeys: [] },
  ),
  metadata,
};
const kind = <K extends string>(value: K) => fc.constant(value);
const operation = fc.oneof(
  fc.record({ kind: kind("send"), ...sending }, { requiredKeys: ["kind", "message"] }),
  fc.record({ kind: kind("stream"), ...sending }, { requiredKeys: ["kind", "message"] }),
  fc.record({ kind: kind("get"), id: name, historyLength: count }, { requiredKeys: ["kind", "id"] }),
  fc.record(
    {
      kind: kind("list"),
      contextId: name,
      status: fc.constantFrom(...TASK_STATES),
      pageSize: fc.integer({ min: 1, max: 100 }),
      pageToken: name,
      historyLength: count,
      statusTimestampAfter: fc.integer({ min: 0, max: 4e12 }),
      includeArtifacts: fc.boolean(),
    },
    { requiredKeys: ["kind"] },
  ),
  fc.record({ kind: kind("cancel"), id: name, metadata }, { requiredKeys: ["kind", "id"] }),
  fc.record(
    { kind: kind("subscribe"), id: name, after: fc.integer({ min: 1, max: 1e9 }) },
    { requiredKeys: ["kind", "id"] },
  ),
  fc.record({ kind: kind("push-get"), taskId: name, id: name }),
  fc.record({ kind: kind("push-delete"), taskId: name, id: name }),
  fc.record({ kind: kind("push-list"), taskId: name, pageToken: name }, { requiredKeys: ["kind", "taskId"] }),
  fc.record({
    kind: kind("push-create"),
    taskId: name,
    config: fc.record({ id: name, url: fc.webUrl(), token: text }, { requiredKeys: ["url"] }),
  }),
  fc.record({ kind: kind("extended-card") }),
) as fc.Arbitrary<Operation>;

const CARD: AgentCard = {
  name: "Agent",
  description: "Does things.",
  version: "1.0.0",
  supportedInterfaces: [{ url: BASE, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: true, pushNotifications: true },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [],
};

function outcomesFor(sample: Task): { [K in UnaryKind]: Outcomes[K] } {
  const config = { id: "p", taskId: sample.id, url: "https://hook.example" };
  return {
    send: { task: sample },
    get: sample,
    cancel: sample,
    list: { tasks: [sample], nextPageToken: "", pageSize: 50, totalSize: 1 },
    "push-create": config,
    "push-get": config,
    "push-list": { configs: [config], nextPageToken: "" },
    "push-delete": undefined,
    "extended-card": CARD,
  };
}

interface Served {
  readonly reply: ExchangeReply;
  readonly seen: { operation: Operation; call: CallContext } | undefined;
}

async function serve(
  call: ExchangeCall,
  dispatch: (operation: Operation) => Promise<OutcomeOf<Operation>>,
): Promise<Served> {
  let seen: Served["seen"];
  const context: ServeContext = {
    caller: { owner: "me", authenticated: true },
    limits: { maxDepth: 64, maxValues: 200_000, maxParts: 1000, keepAliveMs: 60_000 },
    agentOfTenant: () => undefined,
    ...toolsOf(),
    service: {
      name: "agent",
      card: CARD,
      profile: { ...CARD, inputModes: [], outputModes: [], streaming: true, extensions: [] },
      dispatch: ((given: Operation, circumstances: CallContext) => {
        seen = { operation: given, call: circumstances };
        return dispatch(given);
      }) as ServeContext["service"]["dispatch"],
      activate: (requested) => requested,
      originOf: async () => undefined,
    },
  };
  const isRest = call.url !== BASE;
  const below = call.url.slice(BASE.length);
  const [path = "", query = ""] = below.split("?");
  const exchange: ExchangeRequest = {
    method: call.method,
    path,
    query,
    headers: call.headers,
    body: Buffer.from(call.body ?? ""),
    remoteAddress: undefined,
  };
  if (isRest) return { reply: await http.handle(exchange, context), seen };
  const parsed = parseJsonRpc(exchange.body);
  if (!parsed.ok) throw new Error(parsed.message);
  return { reply: await jsonRpc.handle(parsed.request, exchange, context), seen };
}

function wholeOf(reply: ExchangeReply) {
  if (isStreamReply(reply)) throw new Error("a stream");
  return { status: reply.status, contentType: reply.headers["content-type"] ?? "", text: String(reply.body ?? "") };
}

async function framesOf(reply: ExchangeReply, calling: ExchangeCalling): Promise<StreamFrame[]> {
  if (!isStreamReply(reply)) throw new Error(`no stream: ${String(reply.body)}`);
  async function* chunks(frames: AsyncIterable<string>) {
    for await (const batch of frames) yield Buffer.from(batch);
  }
  const all: StreamFrame[] = [];
  for await (const events of readSseEvents(chunks(reply.frames))) {
    for (const { data, event, lastEventId } of events)
      all.push(calling.decodeFrame({ data, event, id: lastEventId }).value as StreamFrame);
  }
  return all;
}

async function* frameStream(sample: Task): AsyncGenerator<readonly StreamFrame[]> {
  yield [{ number: 3, event: { task: sample }, json: JSON.stringify({ task: sample }) }];
}

const target = fc.record({
  url: fc.constant(BASE),
  tenant: fc.option(name, { nil: undefined }),
  headers: fc.constant({ authorization: "Bearer x" }),
  extensions: fc.array(fc.constantFrom("urn:a", "urn:b"), { maxLength: 2 }),
});

test.each([jsonRpcCalling, httpCalling])(
  "$binding: every operation arrives as it was asked and is answered as it was meant",
  async (calling) => {
    await fc.assert(
      fc.asyncProperty(operation, target, task, async (asked, place, sample) => {
        const { losses, value: call } = calling.encode(asked, place as CallTarget);
        const outcomes = outcomesFor(sample);
        const { reply, seen } = await serve(call, async ({ kind: served }) =>
          served === "stream" || served === "subscribe" ? frameStream(sample) : outcomes[served],
        );
        expect(losses).toEqual([]);
        const { config, ...rest } = { config: undefined, ...asked };
        expect(seen?.operation).toMatchObject({ ...rest, ...(config === undefined ? {} : { config }) });
        expect(seen?.call).toMatchObject({ tenant: place.tenant ?? "", extensions: place.extensions });
        if (asked.kind === "stream" || asked.kind === "subscribe") {
          expect(await framesOf(reply, calling)).toMatchObject([{ number: 3, event: { task: sample } }]);
        } else {
          expect(calling.decode(asked.kind, wholeOf(reply)).value).toEqual(outcomes[asked.kind]);
        }
      }),
      { numRuns: 300 },
    );
  },
);

test.each([jsonRpcCalling, httpCalling])("$binding: every error is decoded as it was raised", async (calling) => {
  for (const code of ERROR_CODES) {
    const raised = new ProtocolError(code, "Because.", {
      metadata: { taskId: "t" },
      violations: [{ field: "id", description: "is odd" }],
      retryAfter: 7,
    });
    const { value: call } = calling.encode(
      { kind: "get", id: "t" },
      { url: BASE, tenant: undefined, headers: {}, extensions: [] },
    );
    const { reply } = await serve(call, () => Promise.reject(raised));
    const heard = (() => {
      try {
        return calling.decode("get", wholeOf(reply));
      } catch (error) {
        return error;
      }
    })();
    expect(heard).toMatchObject(
      code === "INTERNAL_ERROR"
        ? { code }
        : { code, message: "Because.", metadata: raised.metadata, violations: raised.violations, retryAfter: 7 },
    );
  }
});
