import { expect, test } from "vitest";
import type { RpcCalling } from "../../dialects/contract.ts";
import { ProtocolError } from "../../model/errors.ts";
import { type Loss, NO_LOSSES } from "../../model/loss.ts";
import type { Outcomes } from "../../model/operation.ts";
import { CarrierError, NotConnectedError } from "../../wire/exchange.ts";
import { type RpcStatus, RpcStatusError } from "../../wire/rpc.ts";
import type { ExchangeTrace } from "../options.ts";
import { task } from "../testing/fake-agent.ts";
import type { RpcCarrier } from "./grpc-carrier.ts";
import { type GrpcAddress, parseGrpcAddress } from "./grpc-channels.ts";
import { createGrpcTransport } from "./grpc-transport.ts";
import { createTracer } from "./trace.ts";
import type { CallSettings, TransportSetup } from "./transport.ts";

const LOSS: Loss = { kind: "dropped", path: "message.x", reason: "No place." };
const SETTINGS: CallSettings = {
  signal: new AbortController().signal,
  timeoutMs: undefined,
  idempotencyKey: "k",
  extensions: ["urn:b"],
};
const SEND = { kind: "send", message: { messageId: "m", role: "ROLE_USER", parts: [] } } as const;
const STREAM = { ...SEND, kind: "stream" } as const;

/** Requests are the target as JSON, answers and frames are JSON. */
const calling: RpcCalling = {
  carrier: "rpc",
  binding: "GRPC",
  version: "1.0",
  encode(operation, target) {
    if (operation.kind === "list") throw new ProtocolError("UNSUPPORTED_OPERATION", "No word for it.");
    const message = Buffer.from(JSON.stringify(target));
    const losses = operation.kind === "cancel" ? [LOSS] : NO_LOSSES;
    return { value: { service: "S", method: operation.kind, metadata: target.headers, message }, losses };
  },
  decode<K extends keyof Outcomes>(_: K, message: Uint8Array) {
    return { value: JSON.parse(Buffer.from(message).toString()) as Outcomes[K], losses: NO_LOSSES };
  },
  decodeFrame(message) {
    const json = Buffer.from(message).toString();
    if (json === "bad") throw new ProtocolError("INVALID_AGENT_RESPONSE", "No frame.");
    return {
      value: { event: { message: JSON.parse(json) }, json },
      losses: json.includes("lossy") ? [LOSS] : NO_LOSSES,
    };
  },
  decodeFailure({ code, message }: RpcStatus, kind) {
    if (code === 9) return new ProtocolError(kind === "cancel" ? "TASK_NOT_CANCELABLE" : "INVALID_PARAMS", message);
    return new ProtocolError(
      code === 12 ? "METHOD_NOT_FOUND" : code === 13 ? "INTERNAL_ERROR" : "INVALID_PARAMS",
      message,
    );
  },
};

function setUp(carrier: Partial<RpcCarrier>, changes: Partial<TransportSetup> = {}) {
  const losses: Loss[] = [];
  const traces: ExchangeTrace[] = [];
  const headers = { authorization: "Bearer secret", "x-plain": "p" };
  const setup: TransportSetup = {
    headers,
    extensions: ["urn:a"],
    timeoutMs: 1_000,
    streamSilenceMs: 2_000,
    tracer: createTracer((trace) => traces.push(trace), headers),
    report: (found) => void losses.push(...found),
    notifyFallback() {},
    ...changes,
  };
  const chosen = { url: "x.example:1", binding: "GRPC", version: "1.0", dialect: "d", tenant: "t" };
  const address = parseGrpcAddress(chosen.url) as GrpcAddress;
  const full: RpcCarrier = { unary: () => Promise.reject(new Error("unary")), stream: () => streamOf(), ...carrier };
  return { transport: createGrpcTransport(calling, chosen, address, full, setup), losses, traces };
}

function streamOf(...items: readonly (string | Error)[]) {
  async function* messages() {
    for (const item of items) {
      if (item instanceof Error) throw item;
      yield item.split("|").map((text) => Buffer.from(text));
    }
  }
  return { messages: messages(), cancel() {} };
}

test("a call has the target, the deadline and the signal; its trace has no secret", async () => {
  const seen: unknown[] = [];
  const { traces, transport } = setUp({
    async unary(address, call, options) {
      seen.push(address.authority, JSON.parse(Buffer.from(call.message).toString()), options);
      return { metadata: { "set-cookie": "secret" }, message: Buffer.from(JSON.stringify({ task: task() })) };
    },
  });
  expect(await transport.attempt(SEND, SETTINGS)).toEqual({ ok: true, value: { task: task() } });
  expect(seen).toEqual([
    "x.example:1",
    {
      url: "x.example:1",
      tenant: "t",
      headers: { authorization: "Bearer secret", "x-plain": "p" },
      extensions: ["urn:a", "urn:b"],
      idempotencyKey: "k",
    },
    { signal: SETTINGS.signal, timeoutMs: 1_000, silenceMs: 2_000 },
  ]);
  expect(traces).toMatchObject([
    { direction: "request", method: "gRPC", url: "grpcs://x.example:1/S/send", body: expect.stringMatching(/bytes/) },
    { direction: "response", status: 0, headers: { "set-cookie": "[redacted]" } },
  ]);
  expect(JSON.stringify(traces)).not.toContain("secret");
});

const status = (code: number, details?: Uint8Array) =>
  new RpcStatusError({ code, message: "No.", ...(details === undefined ? {} : { details }) });
const carrierError = (code: CarrierError["code"], cause?: Error) => new CarrierError(code, "", { cause });

test.each([
  [status(3), "INVALID_PARAMS", false, "unknown"],
  [status(13), "INTERNAL_ERROR", true, "unknown"],
  [status(12), "METHOD_NOT_FOUND", false, "untaken"],
  [carrierError("unreachable", new NotConnectedError("no", "ECONNREFUSED")), "unreachable", true, "untaken"],
  [carrierError("timeout", new NotConnectedError("no", "")), "timeout", true, "untaken"],
  [carrierError("timeout"), "timeout", true, "unknown"],
  [carrierError("broken-stream"), "broken-stream", true, "unknown"],
  [carrierError("aborted"), "aborted", false, "unknown"],
  [carrierError("too-large"), "broken-stream", false, "unknown"],
])("%s is %s, transient: %s, %s", async (error, code, transient, reach) => {
  const { transport } = setUp({ unary: () => Promise.reject(error), stream: () => streamOf(error) });
  const expected = { ok: false, error: { code }, transient, reach };
  expect(await transport.attempt(SEND, SETTINGS)).toMatchObject(expected);
  expect(await transport.open(STREAM, SETTINGS)).toMatchObject(expected);
});

test("the same status means something else for another operation", async () => {
  const { transport } = setUp({ unary: () => Promise.reject(status(9)) });
  const cancelled = await transport.attempt({ kind: "cancel", id: "t" }, SETTINGS);
  expect(cancelled).toMatchObject({ error: { code: "TASK_NOT_CANCELABLE" } });
  expect(await transport.attempt(SEND, SETTINGS)).toMatchObject({ error: { code: "INVALID_PARAMS" } });
});

test("what cannot be encoded is not sent", async () => {
  const { losses, transport } = setUp({});
  expect(await transport.attempt({ kind: "list" }, SETTINGS)).toMatchObject({
    error: { code: "UNSUPPORTED_OPERATION" },
    reach: "unsaid",
  });
  expect(losses).toEqual([]);
  await transport.attempt({ kind: "cancel", id: "t" }, SETTINGS);
  expect(losses).toEqual([LOSS]);
  const refused = new ProtocolError("LOSS_REFUSED", "No.");
  const strict = setUp(
    { unary: () => Promise.reject(new Error("was sent")) },
    {
      report(found) {
        if (found.length > 0) throw refused;
      },
    },
  );
  expect(await strict.transport.attempt({ kind: "cancel", id: "t" }, SETTINGS)).toMatchObject({
    error: refused,
    reach: "unsaid",
  });
});

test("a stream keeps its batches; what came before a bad frame or a failure is still good", async () => {
  const read = async (...items: readonly (string | Error)[]) => {
    const { transport } = setUp({ stream: () => streamOf(...items) });
    const opened = await transport.open(STREAM, SETTINGS);
    if (!opened.ok) throw opened.error;
    const batches: number[] = [];
    try {
      for await (const frames of opened.value.frames) batches.push(frames.length);
    } catch (error) {
      return [...batches, (error as { code: string }).code];
    }
    return batches;
  };
  expect(await read("{}|{}", "{}")).toEqual([2, 1]);
  expect(await read("{}|bad|{}", "{}")).toEqual([1, "INVALID_AGENT_RESPONSE"]);
  expect(await read("{}", status(3))).toEqual([1, "INVALID_PARAMS"]);
  expect(await read("{}", carrierError("broken-stream"))).toEqual([1, "broken-stream"]);
  expect(await read()).toEqual([]);
});

test("strict refuses a frame that cannot be decoded completely", async () => {
  const { transport } = setUp(
    { stream: () => streamOf('{}|{"lossy":1}') },
    {
      report(found) {
        if (found.length > 0) throw new ProtocolError("LOSS_REFUSED", "No.");
      },
    },
  );
  const opened = await transport.open(STREAM, SETTINGS);
  if (!opened.ok) throw opened.error;
  expect((await opened.value.frames.next()).value).toHaveLength(1);
  await expect(opened.value.frames.next()).rejects.toMatchObject({ code: "LOSS_REFUSED" });
});
