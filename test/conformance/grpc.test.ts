import { Server, type ServiceError, type sendUnaryData, status } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { MESSAGE_CODECS } from "../../src/features/conformance/cli/conformance.ts";
import { runConformance } from "../../src/features/conformance/index.ts";
import { listenGrpc } from "../support/lifecycle.ts";
import { checksOf } from "./report-helpers.ts";

/** A gRPC service that does whatever a test says, with bytes in and out. */
const SERVICE = "lf.a2a.v1.A2AService";
type Answer = (method: string, bytes: Buffer) => Uint8Array | Partial<ServiceError>;

async function start(methods: readonly string[], answer: Answer) {
  const identity = (buffer: Buffer) => buffer;
  const definition = Object.fromEntries(
    methods.map((method) => [
      method,
      {
        path: `/${SERVICE}/${method}`,
        requestStream: false,
        responseStream: false,
        requestSerialize: identity,
        requestDeserialize: identity,
        responseSerialize: identity,
        responseDeserialize: identity,
      },
    ]),
  );
  const implementation = Object.fromEntries(
    methods.map((method) => [
      method,
      ({ request }: { request: Buffer }, callback: sendUnaryData<Buffer>) => {
        const reply = answer(method, request);
        if (reply instanceof Uint8Array) callback(null, Buffer.from(reply));
        else callback(reply);
      },
    ]),
  );
  const server = new Server();
  server.addService(definition, implementation);
  return { url: `127.0.0.1:${await listenGrpc(server)}`, server };
}

async function outcomes(url: string, ...only: readonly string[]): Promise<Record<string, string>> {
  const card = {
    name: "Fake",
    supportedInterfaces: [{ url, protocolBinding: "GRPC", protocolVersion: "1.0" }],
    capabilities: {},
  };
  const report = await runConformance({
    cardUrl: "file:///card.json",
    cardText: JSON.stringify(card),
    codecs: MESSAGE_CODECS,
    only,
    requestTimeoutMs: 2_000,
  });
  return Object.fromEntries(checksOf(report).map(({ name, reason, status }) => [name, `${status}: ${reason ?? ""}`]));
}

const TASK = MESSAGE_CODECS["1.0"].encode("Task", { id: "t", status: { state: "TASK_STATE_COMPLETED" } });

describe("gRPC interfaces", () => {
  it("fail when bytes that are no message are taken", async () => {
    const { url } = await start(["GetTask", "SendMessage"], () => TASK);
    const found = await outcomes(url, "no-message-bytes");
    expect(found["no-message-bytes"]).toMatch(/^failed: bytes that are not a message were accepted/);
  });

  it("fail when methods exist that are none", async () => {
    const { url } = await start(["GetTask", "ConformanceUnknown"], () => TASK);
    expect((await outcomes(url, "no-rpc-method"))["no-rpc-method"]).toMatch(/^failed: a method that does not exist/);
  });

  it("fail when an error is reported by its status alone", async () => {
    const { url } = await start(["GetTask"], () => ({ code: status.NOT_FOUND, details: "no such task" }));
    const found = await outcomes(url, "get-unknown-task", "statuses-name-reason", "errors-have-their-code");
    expect(found["get-unknown-task"]).toMatch(/^passed/);
    expect(found["errors-have-their-code"]).toMatch(/^passed/);
    expect(found["statuses-name-reason"]).toMatch(/^failed: TASK_NOT_FOUND has no ErrorInfo/);
  });

  it("fail when answers are no messages, or do not come", async () => {
    const { server, url } = await start(["GetTask"], () => Uint8Array.of(0x0a, 0xff));
    expect((await outcomes(url, "get-unknown-task"))["get-unknown-task"]).toBe("failed: the answer is not a Task");
    server.forceShutdown();
    expect((await outcomes(url, "get-unknown-task"))["get-unknown-task"]).toMatch(/^failed: .*(connect|ECONN)/i);
  });

  it("are reported as untested where their bytes are unknown", async () => {
    const card = {
      name: "Fake",
      supportedInterfaces: [{ url: "h:1", protocolBinding: "GRPC", protocolVersion: "1.0" }],
    };
    const report = await runConformance({ cardUrl: "file:///card.json", cardText: JSON.stringify(card) });
    expect(report.untested).toEqual(["GRPC 1.0 at h:1"]);
    expect(report.groups.map(({ subject }) => subject.kind)).toEqual(["card"]);
  });
});
