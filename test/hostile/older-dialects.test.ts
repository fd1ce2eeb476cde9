import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BINDINGS, type Binding } from "../support/bindings.ts";
import { usedMebibytes } from "../support/memory.ts";
import { untilMetric } from "../support/metrics.ts";
import { useScene } from "../support/scene.ts";
import { STORES } from "../support/store-specs.ts";
import { AT_ONCE, inBatches } from "./batches.ts";
import { OLDER_DIALECTS } from "./dialect-requests.ts";
import type { Known } from "./hostile-request.ts";
import { expectRefused, judged, prepare } from "./http-caller.ts";
import { oddIn } from "./odd-by-dialect.ts";
import { refusedIn } from "./refused-by-dialect.ts";

const MINUTES = 180_000;
const prototypeBefore = Object.getOwnPropertyNames(Object.prototype);

const BATCHES: Readonly<Record<string, { readonly refused: number; readonly odd: number }>> = {
  memory: { refused: 200, odd: 100 },
  sqlite: { refused: 20, odd: 30 },
};

/** All older dialects at once, as they share the server and, two of them, the URL. */
describe.each(STORES)("hostile requests of older dialects on $name", (spec) => {
  const options = { agents: { strict: {}, lenient: { inputModes: ["*/*"] } }, limits: { body: 256 * 1024 } };
  const scene = useScene(BINDINGS[0] as Binding, options, spec);
  const batches = BATCHES[spec.name] ?? { refused: 20, odd: 30 };
  let sent = 0;

  it("that must be refused are refused, and leave nothing behind", { timeout: MINUTES }, async () => {
    const known: Known = await prepare(scene, "strict");
    const client = scene.client("strict");
    const before = await client.list({ includeArtifacts: true });
    const requests = fc.oneof(...OLDER_DIALECTS.map((tongue) => refusedIn(tongue, () => known)));
    await inBatches(requests, batches.refused, async (batch) => {
      sent += batch.length;
      await expectRefused(scene, "strict", batch);
      expect((await client.list({ pageSize: 1 })).totalSize).toBe(2);
    });
    expect(await client.list({ includeArtifacts: true })).toEqual(before);
  });

  it("that are merely odd get an answer that makes sense", { timeout: MINUTES }, async () => {
    const known: Known = await prepare(scene, "lenient");
    const requests = fc.oneof(...OLDER_DIALECTS.map((tongue) => oddIn(tongue, () => known)));
    await inBatches(requests, batches.odd, async (batch) => {
      sent += batch.length;
      await judged(scene, "lenient", batch);
    });
  });

  it("were many, and the server is as it was before", async () => {
    expect(sent).toBe(AT_ONCE * (batches.refused + batches.odd));
    await untilMetric(scene.server.url, "dragoman_streams_open", 0);
    await untilMetric(scene.server.url, "dragoman_tasks_live", 0);
    expect((await scene.client().task("work; artifact still here")).status.state).toBe("TASK_STATE_COMPLETED");
    expect(usedMebibytes()).toBeLessThan(400);
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(prototypeBefore);
  });

  it.each(OLDER_DIALECTS)("$lane is supported as before", async (tongue) => {
    const [params] = fc.sample(tongue.valid, { seed: 1, numRuns: 1 });
    const requests = tongue.bodies(JSON.stringify(params)).flatMap((body) => tongue.say("usual", body));
    expect(new Set(await judged(scene, "stage", requests.slice(0, 1)))).toEqual(new Set(["done"]));
  });
});
