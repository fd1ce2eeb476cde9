/**
 * A gateway in front of an agent of every dialect, with and without streams, through every fault: each piece once, and
 * the right end. One process serves all upstreams, so that a fault is caused once for all of them.
 */
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { SharedStoreAccess } from "../../src/core/engine/testing/stores.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import { createMemoryStore } from "../../src/core/store/memory/memory-store.ts";
import { HTTP_BINDINGS } from "../support/bindings.ts";
import { startGateway } from "../support/gateway.ts";
import { createFolder } from "../support/lifecycle.ts";
import { WireClient } from "../support/wire-client.ts";
import type { WireTask } from "../support/wire-types.ts";
import { DIALECTS, type Dialect, MODES, type Mode, RawUpstream } from "./raw-upstream.ts";
import { Victim } from "./victim.ts";

const [JSON_RPC] = HTTP_BINDINGS;
const PIECES = 9;
const ALL = Array.from({ length: PIECES }, (_, at) => `${at + 1};`).join("");

/** Combinations that a dialect does not have, and why. */
const IMPOSSIBLE: Readonly<Partial<Record<`${Dialect} ${Mode}`, string>>> = {
  "0.1 snapshot": "Its streams have no frame for a task.",
  "xiaoyi replay": "A stream answers one message and cannot be opened again.",
  "xiaoyi snapshot": "A stream answers one message and cannot be opened again.",
  "xiaoyi none": "Every message is answered by a stream.",
};

/** What becomes of the upstream's task while the gateway is away, or while its stream is cut. */
const MEANWHILE = ["continues", "finishes", "is lost"] as const;
type Meanwhile = (typeof MEANWHILE)[number];

interface Row {
  readonly agent: string;
  readonly dialect: Dialect;
  readonly mode: Mode;
  /** Where the id of a task is not known before its end, nothing can be read after a fault. */
  readonly isBlind: boolean;
}

const ROWS: readonly Row[] = (Object.keys(DIALECTS) as Dialect[]).flatMap((dialect) =>
  MODES.filter((mode) => IMPOSSIBLE[`${dialect} ${mode}`] === undefined).map((mode) => ({
    agent: `${dialect}-${mode}`.replaceAll(".", "-"),
    dialect,
    mode,
    isBlind: dialect === "xiaoyi" || (dialect === "tasks-rest" && mode === "none"),
  })),
);

const upstream = await RawUpstream.start();
const agents = Object.fromEntries(ROWS.map(({ agent, dialect, mode }) => [agent, upstream.remote(dialect, mode)]));
process.env.REMOTE_AGENTS = JSON.stringify({ agents });

interface Case extends Row {
  readonly label: string;
  readonly meanwhile: Meanwhile;
  id: string;
}

/** A blocking send of 0.1 shows nothing before its end, though its task can be read by the id that was chosen here. */
const showsPieces = ({ dialect, isBlind, mode }: Row) => !(mode === "none" && (isBlind || dialect === "0.1"));

/** Starts a task for each upstream and lets it show three pieces. */
async function begin(url: string, name: string, meanwhiles: readonly Meanwhile[]): Promise<Case[]> {
  const cases = ROWS.flatMap((row) =>
    meanwhiles.map((meanwhile): Case => ({ ...row, meanwhile, label: `${name} ${row.agent} ${meanwhile}`, id: "" })),
  );
  await Promise.all(
    cases.map(async (one) => {
      one.id = (await clientOf(url, one).start(one.label)).id;
      await expect.poll(() => upstream.count(one.label, "send", "stream"), { timeout: 20_000 }).toBe(1);
      upstream.advance(one.label, 3);
      if (!showsPieces(one)) return;
      await expect.poll(async () => textOf(await clientOf(url, one).get(one.id)), { timeout: 20_000 }).toBe("1;2;3;");
    }),
  );
  return cases;
}

const clientOf = (url: string, { agent }: Row) => new WireClient(JSON_RPC, `${url}/agents/${agent}`);
const textOf = ({ artifacts = [] }: WireTask) =>
  artifacts.flatMap(({ parts }) => parts.map(({ text }) => text)).join("");
const reasonOf = ({ status }: WireTask) => status.message?.parts[0]?.text ?? "";

/** What happens before the gateway looks again. */
function during({ label, meanwhile }: Case): void {
  if (meanwhile === "is lost") {
    upstream.forget(label);
    return;
  }
  upstream.advance(label, 6);
  if (meanwhile === "finishes") {
    upstream.advance(label, PIECES);
    upstream.end(label);
  }
}

/** Why a task whose upstream cannot be asked, or has lost it, may fail. */
const REASONS =
  /no longer has the task|cannot be asked about the task|whether the agent received|cannot resume it|^Upstream http/;

/** Lets the upstream continue once it was asked again; returns what the task has become, if that is wrong. */
async function finish(url: string, one: Case, before: number): Promise<readonly string[]> {
  if (one.meanwhile === "continues") {
    const looks = () => upstream.count(one.label, "get", "subscribe");
    if (!one.isBlind) await expect.poll(looks, { timeout: 30_000, message: one.label }).toBeGreaterThan(before);
    upstream.advance(one.label, PIECES);
    upstream.end(one.label);
  }
  const done = await clientOf(url, one).ended(one.id);
  const isDone = !one.isBlind && one.meanwhile !== "is lost";
  const reason = reasonOf(done);
  const found = [done.status.state, textOf(done), upstream.count(one.label, "send", "stream")].join(" ");
  const expected = isDone ? `TASK_STATE_COMPLETED ${ALL} 1` : `TASK_STATE_FAILED ${showsPieces(one) ? "1;2;3;" : ""} 1`;
  const isRight = found === expected && (isDone ? reason === "" : REASONS.test(reason));
  return isRight ? [] : [`${one.label}: ${found} (${reason}), not ${expected}`];
}

const looksAt = (cases: readonly Case[]) =>
  new Map(cases.map((one) => [one.label, upstream.count(one.label, "get", "subscribe")]));

async function finishAll(url: string, cases: readonly Case[], before: ReadonlyMap<string, number>): Promise<void> {
  const wrong = await Promise.all(cases.map((one) => finish(url, one, before.get(one.label) ?? 0)));
  expect(wrong.flat()).toEqual([]);
}

test("every combination of dialect and stream is here, or it is said why not", () => {
  const possible = ROWS.map(({ dialect, mode }) => `${dialect} ${mode}`);
  const all = Object.keys(DIALECTS).flatMap((dialect) => MODES.map((mode) => `${dialect} ${mode}`));
  expect([...possible, ...Object.keys(IMPOSSIBLE)].sort()).toEqual(all.sort());
});

describe("a gateway", () => {
  const victim = new Victim(join(createFolder(), "data.db"), "./remote-child.ts");
  afterAll(() => victim.kill());

  test.each(["SIGKILL", "SIGTERM"] as const)("that is ended by %s", { timeout: 120_000 }, async (signal) => {
    await victim.start();
    // What an upstream does meanwhile makes no difference to how the gateway was ended.
    const isWhole = signal === "SIGKILL" || process.env.EXPLORE === "1";
    const cases = await begin(await victim.url, signal, isWhole ? MEANWHILE : ["continues"]);
    await victim.kill(signal);
    const before = looksAt(cases);
    for (const one of cases) during(one);
    await victim.start();
    await finishAll(await victim.url, cases, before);
    await victim.kill();
  });

  test("whose tasks are taken over by another node", { timeout: 120_000 }, async () => {
    const store = { ...createMemoryStore({ clock: systemClock }), durable: true, close: () => Promise.resolve() };
    const access = new SharedStoreAccess();
    const times = { leaseMs: 1_500, drainMs: 0 };
    const first = await startGateway(agents, { store: access.wrap(store), times });
    const cases = await begin(first.url, "take-over", MEANWHILE);
    access.leave();
    const before = looksAt(cases);
    for (const one of cases) during(one);
    const second = await startGateway(agents, { store: new SharedStoreAccess().wrap(store), times });
    await finishAll(second.url, cases, before);
  });

  test("whose streams are cut", { timeout: 120_000 }, async () => {
    const { url } = await startGateway(agents);
    const cases = await begin(url, "cut", MEANWHILE);
    const before = looksAt(cases);
    for (const one of cases) {
      upstream.cut(one.label);
      during(one);
    }
    await finishAll(url, cases, before);
  });
});

describe("a task of an upstream that does not stream", () => {
  const rows = ROWS.filter(({ isBlind, mode }) => mode === "none" && !isBlind);

  test("is cancelled there under the upstream's id, and says so where that is refused", async () => {
    const { url } = await startGateway(agents, { times: { drainMs: 0 } });
    for (const isRefused of [false, true]) {
      upstream.refusesCancel = isRefused;
      const cancelled = rows.map(async (row) => {
        const label = `cancel ${row.agent} ${isRefused}`;
        const { id } = await clientOf(url, row).start(label);
        await expect.poll(() => upstream.count(label, "send"), { timeout: 20_000 }).toBe(1);
        const task = await clientOf(url, row).cancel(id);
        expect([label, task.status.state]).toEqual([label, "TASK_STATE_CANCELED"]);
        expect([label, upstream.count(label, "cancel")]).toEqual([label, 1]);
        expect(upstream.of(label).state).toBe(isRefused ? "working" : "canceled");
        expect([label, reasonOf(task)]).toEqual([label, isRefused ? expect.stringContaining("Canceled here.") : ""]);
      });
      await Promise.all(cancelled);
    }
    upstream.refusesCancel = false;
  });

  test("that could is polled if the configuration says so", async () => {
    const { url } = await startGateway({ polled: { ...upstream.remote("1.0", "snapshot"), streaming: false } });
    const client = new WireClient(JSON_RPC, `${url}/agents/polled`);
    const { id } = await client.start("polled");
    await expect.poll(() => upstream.count("polled", "get"), { timeout: 20_000 }).toBeGreaterThan(0);
    upstream.advance("polled", PIECES);
    upstream.end("polled");
    expect(textOf(await client.ended(id))).toBe(ALL);
    expect([upstream.count("polled", "send"), upstream.count("polled", "stream", "subscribe")]).toEqual([1, 0]);
  });
});
