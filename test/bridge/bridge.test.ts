/**
 * Every dialect as caller, every dialect as callee: what the caller sees over a bridge is what it sees when it calls the
 * agent itself, but for losses that the callee's dialect declares and that were reported meanwhile.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RemoteAgent } from "../../src/client/options.ts";
import type { Loss } from "../../src/model/loss.ts";
import { type Log, SILENT_LOG } from "../../src/model/ports.ts";
import { createDialInAgent } from "../../src/server/xiaoyi/dial-in-agent.ts";
import { linkUrl } from "../dial-in/raw-agent.ts";
import { KEYS, startGateway, startUpstream, UPSTREAMS } from "../support/gateway.ts";
import { startServer } from "../support/lifecycle.ts";
import { explain } from "./declared-losses.ts";
import { type Observed, SCENARIOS } from "./scenarios.ts";
import { type Bridges, printBridges } from "./table.ts";

interface ReportedLoss extends Loss {
  readonly dialect: string;
}

/** All losses that servers reported since it was last emptied. */
const reported: ReportedLoss[] = [];
const log: Log = {
  ...SILENT_LOG,
  debug(fields, message) {
    const { dialect, kind, path, reason } = fields;
    if (message !== "A dialect could not express a value.") return;
    reported.push({ dialect, kind, path, reason } as ReportedLoss);
  },
};

const { server, stage } = await startUpstream({ log });
const gatewayOptions = { log, xiaoyi: { http: [{ agent: "far", ...KEYS }] } };

/** An agent that dialled in: it can be called, but calls no one. */
async function startDialIn() {
  const credentials = { agentId: "agent-1", ak: "access-1", sk: "secret-1" };
  const far = createDialInAgent({ ...credentials, name: "Far", description: "Elsewhere." });
  const gateway = await startServer({ agents: { far }, ...gatewayOptions });
  const link = { ...credentials, agent: "stage", url: linkUrl(gateway.url) };
  await startServer({ agents: { stage: stage.agent({ inputModes: ["*/*"] }) }, log, xiaoyi: { links: [link] } });
  return { name: "xiaoyi-link", dialect: "xiaoyi-link", gateway };
}

// A gateway for each, because gRPC of A2A 0.3 can address only one agent of a server.
const CALLEES = await Promise.all([
  ...UPSTREAMS.map(async ({ dialect, name, remote }) => {
    return { name, dialect, gateway: await startGateway({ far: remote(server) }, gatewayOptions) };
  }),
  startDialIn(),
]);

const cells = new Map<string, string>();
const cellKey = (...names: readonly string[]) => names.join(" > ");

describe.each(SCENARIOS)("$name", ({ name: scenario, run }) => {
  let runs = 0;
  const observe = (agents: readonly RemoteAgent[], place: string) =>
    Promise.all(agents.map((agent) => run(agent, stage, `${scenario}-${place}-${++runs}`)));
  let direct: readonly Observed[] = [];
  beforeAll(async () => {
    direct = await observe(await Promise.all(UPSTREAMS.map(({ connect }) => connect(server, "stage"))), "direct");
  });

  test.each(CALLEES)("passes over a bridge to $name", async ({ dialect, gateway, name: callee }) => {
    const callers = await Promise.all(UPSTREAMS.map(({ connect }) => connect(gateway, "far")));
    reported.length = 0;
    const bridged = await observe(callers, callee);
    const losses = reported.filter((loss) => loss.dialect === dialect);
    for (const [at, { name: caller }] of UPSTREAMS.entries()) {
      const cell = explain(direct[at]!, bridged[at]!, losses);
      if (cell === undefined) expect.soft(bridged[at], caller).toEqual(direct[at]);
      else cells.set(cellKey(caller, callee, scenario), cell);
    }
  });
});

test("bridges.json holds what was seen; with --update it is written again", async () => {
  expect(cells.size).toBe(UPSTREAMS.length * CALLEES.length * SCENARIOS.length);
  await expect(`${JSON.stringify(bridges(), undefined, 2)}\n`).toMatchFileSnapshot("./bridges.json");
});

afterAll(() => {
  process.stdout.write(printBridges(bridges()));
});

function bridges(): Bridges {
  const callers = UPSTREAMS.map(({ name }) => name);
  const callees = CALLEES.map(({ name }) => name);
  const lossesOf = (caller: string, callee: string) =>
    SCENARIOS.flatMap(({ name }): [string, string][] => {
      const cell = cells.get(cellKey(caller, callee, name)) ?? "FAILS";
      return cell === "ok" ? [] : [[name, cell.replace("loss: ", "")]];
    });
  return {
    callers,
    callees,
    scenarios: SCENARIOS.map(({ name, shows }) => ({ name, shows })),
    losses: Object.fromEntries(
      callers.map((caller) => [
        caller,
        Object.fromEntries(
          callees
            .map((callee) => [callee, Object.fromEntries(lossesOf(caller, callee))] as const)
            .filter(([, lost]) => Object.keys(lost).length > 0),
        ),
      ]),
    ),
  };
}
