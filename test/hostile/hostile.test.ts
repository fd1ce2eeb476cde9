import { describe, expect, it } from "vitest";
import { BINDINGS, type Binding } from "../support/bindings.ts";
import { usedMebibytes } from "../support/memory.ts";
import { untilMetric } from "../support/metrics.ts";
import { sendRaw } from "../support/raw-http.ts";
import { useScene } from "../support/scene.ts";
import { STORES } from "../support/store-specs.ts";
import { WireClient } from "../support/wire-client.ts";
import { AT_ONCE, inBatches } from "./batches.ts";
import { expectRefused, judged, prepare } from "./http-caller.ts";
import { oddRequests } from "./odd-requests.ts";
import { refusedRequests } from "./refused-requests.ts";

const MINUTES = 180_000;
const prototypeBefore = Object.getOwnPropertyNames(Object.prototype);

/** Batches of each kind. What does not depend on the store is sent to one of them only. */
const BATCHES: Readonly<Record<string, { readonly refused: number; readonly odd: number }>> = {
  memory: { refused: 400, odd: 250 },
  sqlite: { refused: 40, odd: 60 },
};

describe.each(STORES)("hostile requests on $name", (spec) => {
  const options = { agents: { strict: {}, lenient: { inputModes: ["*/*"] } }, limits: { body: 256 * 1024 } };
  const scene = useScene(BINDINGS[0] as Binding, options, spec);
  const batches = BATCHES[spec.name] ?? { refused: 40, odd: 60 };
  let sent = 0;

  it("that must be refused are refused, and leave nothing behind", { timeout: MINUTES }, async () => {
    const known = await prepare(scene, "strict");
    const client = scene.client("strict");
    const before = await client.list({ includeArtifacts: true });
    await inBatches(
      refusedRequests(() => known),
      batches.refused,
      async (requests) => {
        sent += requests.length;
        await expectRefused(scene, "strict", requests);
        expect((await client.list({ pageSize: 1 })).totalSize).toBe(2);
      },
    );
    expect(await client.list({ includeArtifacts: true })).toEqual(before);
  });

  it("that are merely odd get an answer that makes sense", { timeout: MINUTES }, async () => {
    const known = await prepare(scene, "lenient");
    await inBatches(
      oddRequests(() => known),
      batches.odd,
      async (requests) => {
        sent += requests.length;
        await judged(scene, "lenient", requests);
      },
    );
  });

  it("were many, and the server is as it was before", async () => {
    expect(sent).toBeGreaterThanOrEqual(AT_ONCE * (batches.refused + batches.odd));
    await untilMetric(scene.server.url, "dragoman_streams_open", 0);
    await untilMetric(scene.server.url, "dragoman_tasks_live", 0);
    for (const binding of BINDINGS) {
      const task = await new WireClient(binding, scene.server.url).task("work; artifact still here");
      expect(task.status.state, binding.name).toBe("TASK_STATE_COMPLETED");
    }
    expect((await sendRaw(scene.server.url, { path: "/readyz" })).status).toBe(200);
    expect(usedMebibytes()).toBeLessThan(400);
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(prototypeBefore);
  });
});
