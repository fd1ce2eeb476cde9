import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Arbitrary } from "fast-check";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../src/core/model/errors.ts";
import { isTerminal, TASK_STATES } from "../../src/core/model/task.ts";
import { cases } from "../../src/core/model/testing/exploring.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import { createLog } from "../../src/core/server/logging/log.ts";
import { createMemoryStore } from "../../src/core/store/memory/memory-store.ts";
import type { ServeOptions } from "../../src/index.ts";
import { AT_ONCE, seed } from "../hostile/batches.ts";
import { OLDER_DIALECTS } from "../hostile/dialect-requests.ts";
import { HostileCaller } from "../hostile/grpc-caller.ts";
import { oddCalls, refusedCalls } from "../hostile/grpc-calls.ts";
import { GRPC_DIALECTS } from "../hostile/grpc-dialects.ts";
import type { HostileRequest, Known } from "../hostile/hostile-request.ts";
import { judged, prepare } from "../hostile/http-caller.ts";
import { oddIn } from "../hostile/odd-by-dialect.ts";
import { oddRequests } from "../hostile/odd-requests.ts";
import { refusedIn } from "../hostile/refused-by-dialect.ts";
import { refusedRequests } from "../hostile/refused-requests.ts";
import { BINDINGS, type Binding } from "../support/bindings.ts";
import { createFolder } from "../support/lifecycle.ts";
import { usedMebibytes } from "../support/memory.ts";
import { readMetric, untilMetric } from "../support/metrics.ts";
import { sendRaw } from "../support/raw-http.ts";
import { useScene } from "../support/scene.ts";
import { callsWithSecrets, MARK, RIGHT, SECRETS, Watcher, webhooks, withSecrets } from "./planted.ts";

const REQUESTS = cases(50_000, 500);
/** Of all batches, those over gRPC. */
const GRPC_SHARE = 0.25;

const watcher = new Watcher();
const log = await createLog({ level: "debug", pretty: false, destination: watcher });
const audit = join(createFolder(), "audit.jsonl");

const store = createMemoryStore({ clock: systemClock });
const memory = { name: "memory", create: () => ({ store, remove: () => {} }) };

async function endedTasks(): Promise<number> {
  const { byState } = await store.stats();
  return TASK_STATES.filter(isTerminal).reduce((sum, state) => sum + (byState[state] ?? 0), 0);
}

const authenticate: NonNullable<ServeOptions["authenticate"]> = ({ headers }) => {
  const shown = headers.authorization ?? headers["x-api-key"];
  if (shown === undefined) return undefined;
  if (shown === RIGHT) return { owner: "alice", authenticated: true };
  // As somebody may write it who means well.
  throw new ProtocolError("UNAUTHENTICATED", "Who are you?", { cause: new Error(`no such key: Bearer ${shown}`) });
};

describe("hostile requests of known and unknown callers, with secrets in all places", () => {
  const options = {
    agents: { strict: {}, lenient: { inputModes: ["*/*"] } },
    // All come from one address, and most guess.
    limits: { body: 256 * 1024, requestsPerOwner: 500, failedLogins: 1_000_000 },
    // What is made must not stay, or memory could not be compared.
    times: { pruneAfterMs: 0, housekeepingMs: 250 },
    log,
    audit: { file: audit },
    authenticate,
  };
  const scene = useScene(BINDINGS[0] as Binding, options, memory);
  let sent = 0;
  let made = 0;

  /** Every batch has other requests than those before it. */
  async function inBatches<T>(arbitrary: Arbitrary<T>, batches: number, send: (batch: readonly T[]) => Promise<void>) {
    for (let at = 0; at < batches; at++, made++) {
      const batch = fc.sample(arbitrary, { seed: seed + made, numRuns: AT_ONCE });
      await send(batch).catch((cause: unknown) => {
        throw new Error(`Seed ${seed}, batch ${made}: ${String(cause)}`, { cause });
      });
      sent += batch.length;
    }
  }

  async function run(batches: number): Promise<void> {
    const known: Known = await prepare(scene, "lenient");
    const web: Arbitrary<HostileRequest> = withSecrets(
      fc.oneof(
        refusedRequests(() => known),
        oddRequests(() => known),
        webhooks(() => known),
        ...OLDER_DIALECTS.flatMap((tongue) => [refusedIn(tongue, () => known), oddIn(tongue, () => known)]),
      ),
    );
    const aims = GRPC_DIALECTS.map((tongue) => ({ tongue, agent: "lenient", known: () => known }));
    const calls = callsWithSecrets(fc.oneof(...aims.map(refusedCalls), ...aims.map(oddCalls)));
    const overGrpc = Math.ceil(batches * GRPC_SHARE);
    await inBatches(web, batches - overGrpc, async (batch) => {
      await judged(scene, "lenient", batch);
      await scene.client().task(`throw Authorization: Bearer ${SECRETS.thrown}`);
    });
    await inBatches(calls, overGrpc, async (batch) => {
      const caller = new HostileCaller(scene.server.grpc ?? "");
      await Promise.all(batch.map((call) => caller.judged(call)));
      caller.close();
    });
    await untilMetric(scene.server.url, "dragoman_streams_open", 0);
    await untilMetric(scene.server.url, "dragoman_tasks_live", 0);
    await expect.poll(endedTasks).toBe(0);
  }

  it("are all answered sensibly, and cost no memory", async () => {
    const half = Math.ceil(REQUESTS / AT_ONCE / 2);
    await run(half);
    const before = usedMebibytes();
    await run(half);
    const after = usedMebibytes();
    process.stdout.write(
      `${sent} requests; ${before.toFixed(1)} MiB after half of them, ${after.toFixed(1)} at the end\n`,
    );
    expect(sent).toBeGreaterThanOrEqual(REQUESTS);
    expect(after - before).toBeLessThan(8);
  });

  it("leave the server as it was", async () => {
    expect((await sendRaw(scene.server.url, { path: "/readyz" })).status).toBe(200);
    expect((await scene.client().task("artifact still here")).status.state).toBe("TASK_STATE_COMPLETED");
    expect(await readMetric(scene.server.url, "dragoman_audit_failures_total")).toBe(0);
  });

  it("leave no secret in the log, although it says much", () => {
    process.stdout.write(`${watcher.lines} lines of log\n`);
    expect(watcher.lines).toBeGreaterThan(REQUESTS / 100);
    expect(watcher.leaks).toEqual([]);
  });

  it("leave a record of each, without secrets", async () => {
    await scene.server.close();
    const lines = readFileSync(audit, "utf8").trimEnd().split("\n");
    process.stdout.write(`${lines.length} lines of audit log\n`);
    expect(lines.length).toBeGreaterThan(REQUESTS / 4);
    expect(lines.filter((line) => line.includes(MARK))).toEqual([]);
    const results = new Set(lines.map((line) => (JSON.parse(line) as { result: string }).result));
    expect([...results]).toEqual(expect.arrayContaining(["OK", "UNAUTHENTICATED", "TASK_NOT_FOUND"]));
  });
});
