import { describe, expect, it } from "vitest";
import { CARD_CHECKS, CROSS_CHECKS, INTERFACE_CHECKS } from "../../src/features/conformance/checks/index.ts";
import { type ConformanceOptions, type Report, runConformance } from "../../src/features/conformance/index.ts";
import { createTckAgent, type TckOptions } from "../../src/features/writers/tck.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { startServer } from "../support/lifecycle.ts";
import { CROSS_MUTATIONS, MUTATIONS, type Mutation, type Stage } from "./mutations.ts";
import { startProxy } from "./proxy.ts";
import { byBearer, checksOf, readCard } from "./report-helpers.ts";

const UNIT_MS = 250;

/** What runs over gRPC is spoiled in `grpc.test.ts`. */
const ELSEWHERE = ["no-message-bytes", "no-rpc-method", "statuses-name-reason"];

const proxy = await startProxy();

const start = (agent: TckOptions, more: Partial<ServeOptions> = {}) =>
  startServer({
    agents: { tck: createTckAgent({ streamingTimeoutMs: UNIT_MS, ...agent }) },
    publicUrl: proxy.url,
    push: { allowPrivateTargets: true, fetch: proxy.post },
    ...more,
  });
const servers = {
  plain: await start({}),
  silent: await start({ streaming: false }),
  strict: await start({ requiredExtension: "urn:a2a:tck:required-extension" }),
  guarded: await start({}, { authenticate: byBearer }),
} satisfies Record<Stage, DragomanServer>;

async function run(
  { stage = "plain", version = "1.0" }: Pick<Mutation, "stage" | "version">,
  spoiler: Mutation["wrong"],
  options: Partial<ConformanceOptions>,
): Promise<Report> {
  proxy.to(`http://127.0.0.1:${servers[stage].port}`);
  proxy.spoil(spoiler);
  return runConformance({
    ...(await readCard(proxy.url, version)),
    versions: [version],
    requestTimeoutMs: 1_500,
    ...options,
    ...(stage === "guarded" && {
      headers: { Authorization: "Bearer alice" },
      otherHeaders: { Authorization: "Bearer bob" },
    }),
  });
}

/** One mutation, and what became of its check. */
async function outcomeOf(mutation: Mutation, spoiler: Mutation["wrong"]): Promise<string> {
  const { after = [], binding = "JSONRPC", check } = mutation;
  const common = { patienceMs: 1_500, webhookHost: "127.0.0.1" };
  return outcome(await run(mutation, spoiler, { bindings: [binding], only: [...after, check], ...common }), check);
}

function outcome(report: Report, name: string): string {
  const found = checksOf(report).find((result) => result.name === name);
  return found === undefined
    ? "did not run"
    : `${found.status}${found.reason === undefined ? "" : `: ${found.reason}`}`;
}

describe("mutations", () => {
  it("exist for every check", () => {
    const all = [...CARD_CHECKS, ...INTERFACE_CHECKS, ...CROSS_CHECKS].map(({ name }) => name);
    const spoiled = [...MUTATIONS.map(({ check }) => check), ...Object.keys(CROSS_MUTATIONS), ...ELSEWHERE];
    expect([...new Set(spoiled)].sort()).toEqual(all.sort());
  });

  it.each(MUTATIONS)("$check passes where all is right", async (mutation) => {
    expect(await outcomeOf(mutation, mutation.plays ?? {})).toBe("passed");
  });

  it.each(MUTATIONS)("$check fails where something is wrong", async (mutation) => {
    expect(await outcomeOf(mutation, mutation.wrong)).toMatch(/^failed: ./);
  });
});

describe("mutations of one binding", () => {
  const both = async (check: string, spoiler: Mutation["wrong"]) =>
    outcome(await run({}, spoiler, { bindings: ["JSONRPC", "HTTP+JSON"], only: [check] }), check);

  it.each(Object.entries(CROSS_MUTATIONS))("%s", async (check, wrong) => {
    expect(await both(check, {})).toBe("passed");
    expect(await both(check, wrong)).toMatch(/^failed: ./);
  });
});
