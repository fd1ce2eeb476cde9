import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTckAgent } from "../../src/agents/tck.ts";
import { CARD_CHECKS, CROSS_CHECKS, INTERFACE_CHECKS } from "../../src/conformance/checks/index.ts";
import { type ConformanceOptions, type Report, runConformance } from "../../src/conformance/index.ts";
import { type DragomanServer, serve } from "../../src/server/serve.ts";
import { MUTATIONS, type Mutation, type Stage } from "./mutations.ts";
import { drop, get, set } from "./paths.ts";
import { type SeenRequest, type SpoilingProxy, startProxy } from "./proxy.ts";

const isRest = ({ path }: SeenRequest): boolean => path.includes("/rest/");

/** What is right in one binding and wrong in another. */
const CROSS_MUTATIONS: readonly { readonly check: string; readonly wrong: Mutation["wrong"] }[] = [
  {
    check: "same-operations",
    wrong: {
      request: (request) =>
        isRest(request) && /\/tasks\?/.test(request.path)
          ? { status: 404, headers: { "content-type": "text/plain" }, body: "Not Found" }
          : undefined,
    },
  },
  {
    check: "same-tasks",
    wrong: {
      answer: ({ body }, request) => {
        if (isRest(request)) drop(body, "artifacts");
      },
    },
  },
  {
    check: "same-refusals",
    wrong: {
      answer: ({ body }, request) => {
        if (isRest(request) && get(body, "error.details.0.reason") === "TASK_NOT_CANCELABLE")
          set(body, "error.details.0.reason", "UNSUPPORTED_OPERATION");
      },
    },
  },
];

const UNIT_MS = 250;

/** What runs over gRPC is spoiled in `grpc.test.ts`. */
const ELSEWHERE = ["no-message-bytes", "no-rpc-method", "statuses-name-reason"];

let proxy: SpoilingProxy;
const servers = new Map<Stage, DragomanServer>();

beforeAll(async () => {
  proxy = await startProxy();
  const start = (agent: Parameters<typeof createTckAgent>[0], more: Partial<Parameters<typeof serve>[0]> = {}) =>
    serve({
      agents: { tck: createTckAgent({ streamingTimeoutMs: UNIT_MS, ...agent }) },
      port: 0,
      publicUrl: proxy.url,
      push: { allowPrivateTargets: true, fetch: proxy.post },
      ...more,
    });
  servers.set("plain", await start({}));
  servers.set("silent", await start({ streaming: false }));
  servers.set("strict", await start({ requiredExtension: "urn:a2a:tck:required-extension" }));
  servers.set(
    "guarded",
    await start(
      {},
      {
        authenticate: ({ headers }) => {
          const name = headers.authorization?.replace("Bearer ", "");
          return name === undefined ? undefined : { owner: name, authenticated: true };
        },
      },
    ),
  );
});

afterAll(async () => {
  await Promise.all([...servers.values()].map((server) => server.close()));
  await proxy.close();
});

/** Where the server listens; its own URL is the proxy's. */
function upstream(stage: Stage): string {
  return `http://127.0.0.1:${servers.get(stage)?.port}`;
}

async function run(mutation: Mutation, spoiler: Mutation["wrong"]): Promise<Report> {
  const { after = [], binding = "JSONRPC", check, stage = "plain", version = "1.0" } = mutation;
  proxy.to(upstream(stage));
  proxy.spoil(spoiler);
  const cardUrl = `${proxy.url}/.well-known/agent-card.json`;
  const cardText = await (await fetch(cardUrl, { headers: { "A2A-Version": version } })).text();
  const options: ConformanceOptions = {
    cardUrl,
    cardText,
    bindings: [binding],
    versions: [version],
    only: [...after, check],
    requestTimeoutMs: 1_500,
    patienceMs: 1_500,
    webhookHost: "127.0.0.1",
    ...(stage === "guarded"
      ? { headers: { Authorization: "Bearer alice" }, otherHeaders: { Authorization: "Bearer bob" } }
      : {}),
  };
  return runConformance(options);
}

function outcome(report: Report, name: string): string {
  const results = report.groups.flatMap(({ requirements }) => requirements.flatMap(({ checks }) => checks));
  const found = results.find((result) => result.name === name);
  return found === undefined
    ? "did not run"
    : `${found.status}${found.reason === undefined ? "" : `: ${found.reason}`}`;
}

describe("mutations", () => {
  it("exist for every check", () => {
    const all = [...CARD_CHECKS, ...INTERFACE_CHECKS, ...CROSS_CHECKS].map(({ name }) => name);
    const spoiled = [
      ...MUTATIONS.map(({ check }) => check),
      ...CROSS_MUTATIONS.map(({ check }) => check),
      ...ELSEWHERE,
    ];
    expect([...new Set(spoiled)].sort()).toEqual(all.sort());
  });

  it.each(MUTATIONS)("$check passes where all is right", async (mutation) => {
    expect(outcome(await run(mutation, mutation.plays ?? {}), mutation.check)).toBe("passed");
  });

  it.each(MUTATIONS)("$check fails where something is wrong", async (mutation) => {
    const report = await run(mutation, mutation.wrong);
    expect(outcome(report, mutation.check)).toMatch(/^failed: ./);
  });
});

describe("mutations of one binding", () => {
  const both = async (check: string, spoiler: Mutation["wrong"]) => {
    proxy.to(upstream("plain"));
    proxy.spoil(spoiler);
    const cardUrl = `${proxy.url}/.well-known/agent-card.json`;
    const cardText = await (await fetch(cardUrl, { headers: { "A2A-Version": "1.0" } })).text();
    const report = await runConformance({
      cardUrl,
      cardText,
      bindings: ["JSONRPC", "HTTP+JSON"],
      versions: ["1.0"],
      only: [check],
      requestTimeoutMs: 1_500,
    });
    return outcome(report, check);
  };

  it.each(CROSS_MUTATIONS)("$check", async ({ check, wrong }) => {
    expect(await both(check, {})).toBe("passed");
    expect(await both(check, wrong)).toMatch(/^failed: ./);
  });
});
