import { connect } from "node:net";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { BINDINGS, type Binding } from "../support/bindings.ts";
import { usedMebibytes } from "../support/memory.ts";
import { untilMetric } from "../support/metrics.ts";
import { useScene } from "../support/scene.ts";
import { STORES } from "../support/store-specs.ts";
import { AT_ONCE, inBatches, seed } from "./batches.ts";
import { HostileCaller } from "./grpc-caller.ts";
import { type Aim, oddCalls, refusedCalls } from "./grpc-calls.ts";
import { GRPC_DIALECTS } from "./grpc-dialects.ts";
import { framed } from "./grpc-request.ts";
import { prepare } from "./http-caller.ts";

const MINUTES = 180_000;
const prototypeBefore = Object.getOwnPropertyNames(Object.prototype);

const BATCHES: Readonly<Record<string, { readonly refused: number; readonly odd: number }>> = {
  memory: { refused: 150, odd: 100 },
  sqlite: { refused: 15, odd: 20 },
};

describe.each(STORES)("hostile calls over gRPC on $name", (spec) => {
  const options = { agents: { strict: {}, lenient: { inputModes: ["*/*"] } }, limits: { body: 256 * 1024 } };
  const scene = useScene(BINDINGS[0] as Binding, options, spec);
  const batches = BATCHES[spec.name] ?? { refused: 15, odd: 20 };
  const callers: HostileCaller[] = [];
  let made = 0;

  const callerOf = () => {
    const caller = new HostileCaller(scene.server.grpc ?? "");
    callers.push(caller);
    return caller;
  };
  afterAll(() => {
    for (const caller of callers) caller.close();
  });
  const aimsAt = async (agent: string): Promise<Aim[]> => {
    const known = await prepare(scene, agent);
    return GRPC_DIALECTS.map((tongue) => ({ tongue, agent, known: () => known }));
  };

  it("[GRPC-SVC-002] that must be refused are refused, and leave nothing behind", { timeout: MINUTES }, async () => {
    const calls = fc.oneof(...(await aimsAt("strict")).map(refusedCalls));
    const client = scene.client("strict");
    const before = await client.list({ includeArtifacts: true });
    const atRoot = await scene.client().list();
    await inBatches(calls, batches.refused, async (batch) => {
      made += batch.length;
      const caller = callerOf();
      const verdicts = await Promise.all(batch.map((call) => caller.judged(call)));
      for (const [at, { label, path, body, by }] of batch.entries()) {
        const what = `${label} ${path} ${body.toString("base64").slice(0, 400)}`;
        expect(verdicts[at], what).toBe(by === "nobody" ? "left" : "refused");
      }
      expect((await client.list({ pageSize: 1 })).totalSize).toBe(2);
    });
    expect(await client.list({ includeArtifacts: true })).toEqual(before);
    expect(await scene.client().list()).toEqual(atRoot);
  });

  it("that are merely odd get an answer that makes sense", { timeout: MINUTES }, async () => {
    const calls = fc.oneof(...(await aimsAt("lenient")).map(oddCalls));
    await inBatches(calls, batches.odd, async (batch) => {
      made += batch.length;
      const caller = callerOf();
      await Promise.all(batch.map((call) => caller.judged(call)));
    });
  });

  it("were many, and the server is as it was before", async () => {
    expect(made).toBe(AT_ONCE * (batches.refused + batches.odd));
    await untilMetric(scene.server.url, "dragoman_streams_open", 0);
    await untilMetric(scene.server.url, "dragoman_tasks_live", 0);
    const caller = callerOf();
    for (const tongue of GRPC_DIALECTS) {
      const [request] = fc.sample(tongue.valid, { seed: 1, numRuns: 1 });
      for (const { encode, path } of tongue.sends) {
        const body = framed(encode(request ?? {}));
        const call = { label: "usual", path, body, by: "dialect", must: "be answered" } as const;
        expect(await caller.judged(call), `${tongue.name} ${path}`).toBe("done");
      }
    }
    expect((await scene.client().task("work; artifact still here")).status.state).toBe("TASK_STATE_COMPLETED");
    expect(usedMebibytes()).toBeLessThan(400);
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(prototypeBefore);
  });
});

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

describe("connections that no client would make", () => {
  const scene = useScene(BINDINGS[0] as Binding);
  const usual = async () => {
    const caller = new HostileCaller(scene.server.grpc ?? "");
    const [tongue] = GRPC_DIALECTS;
    const { encode, path } = tongue?.service.ListTasks ?? expect.unreachable();
    const body = framed(encode({}));
    expect(await caller.judged({ label: "usual", path, body, by: "dialect", must: "be answered" })).toBe("done");
    caller.close();
  };

  it("metadata without end", async () => {
    const [tongue] = GRPC_DIALECTS;
    const { path } = tongue?.sends[0] ?? expect.unreachable();
    for (const size of [10_000, 100_000, 1_000_000]) {
      const caller = new HostileCaller(scene.server.grpc ?? "");
      const many = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`x-${at}`, "y".repeat(size / 50)]));
      const call = { label: "huge metadata", path, body: framed(Buffer.alloc(0)), headers: many } as const;
      expect(await caller.judged({ ...call, by: "carrier", must: "be refused" })).toBe("refused");
      caller.close();
    }
    await usual();
  });

  it("calls that are begun and dropped, over and over", { timeout: MINUTES }, async () => {
    const [tongue] = GRPC_DIALECTS;
    const { path } = tongue?.sends[0] ?? expect.unreachable();
    const caller = new HostileCaller(scene.server.grpc ?? "");
    const call = { label: "dropped", path, body: Buffer.alloc(3), by: "nobody", must: "be refused" } as const;
    // Far more than a connection is allowed: the server hangs up, which is its right.
    for (let at = 0; at < 40; at++) await Promise.all(Array.from({ length: 50 }, () => caller.judged(call)));
    caller.close();
    await usual();
  });

  it("bytes that are no HTTP/2, with or without its beginning", { timeout: MINUTES }, async () => {
    const port = Number((scene.server.grpc ?? "").split(":").at(-1));
    // The server speaks first, so that its settings are there once it listens.
    const exchange = (bytes: Uint8Array) =>
      new Promise<void>((resolve) => {
        const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
        socket.on("data", () => socket.destroy());
        socket.on("error", () => {});
        socket.on("close", () => resolve());
      });
    const bytes = fc
      .tuple(fc.boolean(), fc.uint8Array({ minLength: 1, maxLength: 200 }))
      .map(([begun, noise]) => Buffer.concat([Buffer.from(begun ? PREFACE : ""), noise]));
    for (const batch of Array.from({ length: 20 }, (_, at) => fc.sample(bytes, { seed: seed + at, numRuns: 20 }))) {
      await Promise.all(batch.map(exchange));
    }
    await usual();
    expect((await scene.client().list()).totalSize).toBe(0);
  });
});
