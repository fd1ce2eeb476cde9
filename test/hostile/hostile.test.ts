import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BINDINGS, type Binding } from "../support/bindings.ts";
import { usedMebibytes } from "../support/memory.ts";
import { untilMetric } from "../support/metrics.ts";
import { openRequest, readAll, sendRaw, sharedConnections } from "../support/raw-http.ts";
import { useScene } from "../support/scene.ts";
import { STORES } from "../support/store-specs.ts";
import { WireClient } from "../support/wire-client.ts";
import type { HostileRequest, Known } from "./hostile-request.ts";
import { type HostileReply, judge, type Verdict } from "./judge.ts";
import { oddRequests } from "./odd-requests.ts";
import { refusedRequests } from "./refused-requests.ts";

/** Another seed makes other requests: `HOSTILE_SEED=$RANDOM`. A failure names the seed it happened with. */
const seed = Number(process.env.HOSTILE_SEED ?? 20_261_115);
const AT_ONCE = 40;
const MINUTE = 60_000;
const prototypeBefore = Object.getOwnPropertyNames(Object.prototype);

/** A stream may stay open for ever, so of streams only the beginning is read. */
async function ask(base: string, { raw }: HostileRequest): Promise<HostileReply> {
  const reply = await openRequest(base, raw, sharedConnections);
  const { status, headers, response } = reply;
  if (headers["content-type"] !== "text/event-stream") {
    return { status, headers, body: (await readAll(response)).toString("utf8") };
  }
  const body = await new Promise<string>((resolve) => {
    response.once("data", (chunk: Buffer) => resolve(chunk.toString("utf8")));
    response.once("end", () => resolve(""));
  });
  response.on("error", () => {});
  reply.hangUp();
  return { status, headers, body };
}

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

  const prepare = async (agent: string): Promise<Known> => {
    const client = scene.client(agent);
    const [ended, waiting] = [await client.task("artifact ok"), await client.task("input more?")];
    return { ended: ended.id, waiting: waiting.id };
  };

  const judged = (agent: string, requests: readonly HostileRequest[]): Promise<Verdict[]> => {
    sent += requests.length;
    const { url } = scene.server;
    const baseOf = ({ atRoot }: HostileRequest) => (atRoot === true ? url : `${url}/agents/${agent}`);
    return Promise.all(requests.map(async (request) => judge(request, await ask(baseOf(request), request))));
  };

  it("that must be refused are refused, and leave nothing behind", { timeout: MINUTE }, async () => {
    const known = await prepare("strict");
    const client = scene.client("strict");
    const before = await client.list({ includeArtifacts: true });
    const batch = fc.array(
      refusedRequests(() => known),
      { minLength: AT_ONCE, maxLength: AT_ONCE },
    );
    await fc.assert(
      fc.asyncProperty(batch, async (requests) => {
        const verdicts = await judged("strict", requests);
        for (const [at, { label }] of requests.entries()) expect(verdicts[at], label).toBe("refused");
        expect((await client.list({ pageSize: 1 })).totalSize).toBe(2);
      }),
      { seed, numRuns: batches.refused },
    );
    expect(await client.list({ includeArtifacts: true })).toEqual(before);
  });

  it("that are merely odd get an answer that makes sense", { timeout: MINUTE }, async () => {
    const known = await prepare("lenient");
    const batch = fc.array(
      oddRequests(() => known),
      { minLength: AT_ONCE, maxLength: AT_ONCE },
    );
    await fc.assert(
      fc.asyncProperty(batch, async (requests) => {
        await judged("lenient", requests);
      }),
      { seed, numRuns: batches.odd },
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
