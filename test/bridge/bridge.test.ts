/**
 * Every dialect as caller, every dialect as callee: what the caller sees over a bridge is what it sees when it calls the
 * agent itself, but for losses that the callee's dialect declares and that were reported meanwhile.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Loss } from "../../src/core/model/loss.ts";
import { type Log, SILENT_LOG } from "../../src/core/model/ports.ts";
import { createDialInAgent } from "../../src/features/xiaoyi/server/dial-in-agent.ts";
import type { Simulator } from "../../src/features/xiaoyi/simulator/index.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { linkUrl } from "../dial-in/raw-agent.ts";
import { KEYS, startGateway, startUpstream, UPSTREAMS } from "../support/gateway.ts";
import { startServer } from "../support/lifecycle.ts";
import { explain, isSeenByPhones } from "./declared-losses.ts";
import { type Caller, connectPhone, startPlatform } from "./phone.ts";
import { type Observed, SCENARIOS } from "./scenarios.ts";
import { type Bridges, printBridges } from "./table.ts";

interface ReportedLoss extends Loss {
  readonly dialect: string;
}

type GatewayOptions = Pick<ServeOptions, "log" | "xiaoyi">;

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

const PHONE = "xiaoyi-link";

/** Of each server, the platform whose phones call its agent. */
const platforms = new Map<DragomanServer, Simulator>();

/** Starts a server whose agent is also called by phones, over the link. */
async function withPhones<T>(
  agent: string,
  start: (options: GatewayOptions) => Promise<T>,
  serverOf: (started: T) => DragomanServer,
) {
  const { link, simulator } = await startPlatform(agent);
  const xiaoyi = { http: [{ agent, ...KEYS }], links: [link], files: { allowHosts: ["127.0.0.1"] } };
  const started = await start({ log, xiaoyi });
  platforms.set(serverOf(started), simulator);
  return started;
}

const { server, stage } = await withPhones("stage", startUpstream, (started) => started.server);

const CALLERS: readonly { readonly name: string; connect(server: DragomanServer, agent: string): Promise<Caller> }[] = [
  ...UPSTREAMS,
  { name: PHONE, connect: (called) => connectPhone(platforms.get(called)!) },
];

const startFar = (start: (options: GatewayOptions) => Promise<DragomanServer>) =>
  withPhones("far", start, (started) => started);

/** An agent that dialled in: it can be called, but calls no one. */
async function startDialIn() {
  const credentials = { agentId: "agent-1", ak: "access-1", sk: "secret-1" };
  const far = createDialInAgent({ ...credentials, name: "Far", description: "Elsewhere." });
  const gateway = await startFar((options) => startServer({ agents: { far }, ...options }));
  const link = { ...credentials, agent: "stage", url: linkUrl(gateway.url) };
  await startServer({ agents: { stage: stage.agent({ inputModes: ["*/*"] }) }, log, xiaoyi: { links: [link] } });
  return { name: "xiaoyi-link", dialect: "xiaoyi-link", gateway };
}

// A gateway for each, because gRPC of A2A 0.3 can address only one agent of a server.
const CALLEES = await Promise.all([
  ...UPSTREAMS.map(async ({ dialect, name, remote }) => {
    return { name, dialect, gateway: await startFar((options) => startGateway({ far: remote(server) }, options)) };
  }),
  startDialIn(),
]);

const cells = new Map<string, string>();
const cellKey = (...names: readonly string[]) => names.join(" > ");

describe.each(SCENARIOS)("$name", ({ name: scenario, run }) => {
  let runs = 0;
  const observe = (agents: readonly Caller[], place: string) =>
    Promise.all(agents.map((agent) => run(agent, stage, `${scenario}-${place}-${++runs}`)));
  const connectAll = (called: DragomanServer, agent: string) =>
    Promise.all(CALLERS.map(({ connect }) => connect(called, agent)));
  let direct: readonly Observed[] = [];
  beforeAll(async () => {
    direct = await observe(await connectAll(server, "stage"), "direct");
  });

  test.each(CALLEES)("passes over a bridge to $name", async ({ dialect, gateway, name: callee }) => {
    const connected = await connectAll(gateway, "far");
    // A phone comes after the others: answers to it are encoded in the dialect of one of the callees, and lose the same.
    for (const isPhone of [false, true]) {
      const some = [...CALLERS.entries()].filter(([, caller]) => (caller.name === PHONE) === isPhone);
      reported.length = 0;
      const bridged = await observe(
        some.map(([at]) => connected[at]!),
        callee,
      );
      const losses = reported.filter((loss) => loss.dialect === dialect);
      for (const [index, [at, { name: caller }]] of some.entries()) {
        const cell = explain(direct[at]!, bridged[index]!, isPhone ? losses.filter(isSeenByPhones) : losses);
        if (cell === undefined) expect.soft(bridged[index], caller).toEqual(direct[at]);
        else cells.set(cellKey(caller, callee, scenario), cell);
      }
    }
  });
});

test("bridges.json holds what was seen; with --update it is written again", async () => {
  expect(cells.size).toBe(CALLERS.length * CALLEES.length * SCENARIOS.length);
  await expect(`${JSON.stringify(bridges(), undefined, 2)}\n`).toMatchFileSnapshot("./bridges.json");
});

afterAll(() => {
  process.stdout.write(printBridges(bridges()));
});

function bridges(): Bridges {
  const callers = CALLERS.map(({ name }) => name);
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
