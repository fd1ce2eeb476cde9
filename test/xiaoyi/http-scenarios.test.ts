/** Agents that are called, put through everything the simulated platform can do to them. */
import { describe, expect, test } from "vitest";
import type { CloudOptions } from "../../src/features/xiaoyi/simulator/cloud/cloud-platform.ts";
import { runScenario } from "../../src/features/xiaoyi/simulator/index.ts";
import type { ServeOptions } from "../../src/index.ts";
import { createStage, sceneOf } from "./stage.ts";
import { PHRASES } from "./talker.ts";

const SEED = 29;
const stage = createStage(SEED);
const options = sceneOf(SEED, 60_000);
const NAMES = [
  "normal",
  "streaming",
  "long",
  "two-messages",
  "cancel",
  "clear",
  "question",
  "crowd",
  "spellings",
] as const;

type Access = NonNullable<NonNullable<ServeOptions["xiaoyi"]>["http"]>[number];

async function call(access: Omit<Access, "agent">, cloud: (origin: string) => Omit<CloudOptions, "url">) {
  const server = await stage.serve({ http: [{ agent: "talker", ...access }] });
  const base = `${server.url}/agents/talker/agent`;
  return stage.simulate({ http: { url: `${base}/message`, ...cloud(base) } });
}

const SIGNED = { kind: "signed", accessKey: "key", secretKey: "secret" } as const;
const signed = { ak: SIGNED.accessKey, sk: SIGNED.secretKey };

describe("an agent that the platform calls", () => {
  test.each(NAMES)("passes %s", async (name) => {
    const simulator = await call(signed, () => ({ credentials: SIGNED, sessions: 5, trailingSpace: true }));
    const report = await runScenario(name, simulator, { ...options, crowd: 100 });
    expect(report).toEqual({ name, outcome: "passed", why: undefined, violations: [], notes: [] });
    expect(simulator.cloud?.reopenedSessions).toBe(0);
  });

  const access: readonly [string, Omit<Access, "agent">, (base: string) => Omit<CloudOptions, "url">][] = [
    ["a signature each time", signed, () => ({ credentials: SIGNED, mode: "stateless" })],
    ["a bearer key", { apiKey: "k" }, () => ({ credentials: { kind: "header", key: "k" } })],
    [
      "a bare key in another header",
      { apiKey: "k", header: "X-Key" },
      () => ({
        credentials: { kind: "header", key: "k", name: "X-Key", bearer: false },
        mode: "stateless",
      }),
    ],
    ["a key in the query", { apiKey: "k", query: "apiKey" }, () => ({ credentials: { kind: "query", key: "k" } })],
    [
      "tokens",
      { oauth: { clientId: "c", clientSecret: "s" } },
      (base) => ({
        credentials: { kind: "oauth", tokenUrl: `${base}/token`, clientId: "c", clientSecret: "s" },
        mode: "stateless",
      }),
    ],
  ];

  test.each(access)("knows the platform by %s", async (_what, entry, cloud) => {
    const simulator = await call(entry, cloud);
    for (const name of ["normal", "clear"] as const) {
      const report = await runScenario(name, simulator, options);
      expect(report).toEqual({ name, outcome: "passed", why: undefined, violations: [], notes: [] });
    }
  });

  test.each(["session", "stateless"] as const)("refuses unknown callers: %s", async (mode) => {
    const simulator = await call(signed, () => ({ credentials: { ...SIGNED, secretKey: "guess" }, mode }));
    const task = simulator.phone.say("hello");
    await task.waitUntilSettled();
    expect(task.screen().text).toBe("");
    expect(task.ending).not.toBe("final");
    expect(simulator.violations).toMatchObject([
      { rule: "http-status", detail: expect.stringMatching(/^HTTP 401: ./) },
    ]);
  });

  test("continues when the platform disconnects, and can still be cancelled", async () => {
    const simulator = await call(signed, () => ({ credentials: SIGNED }));
    if (simulator.cloud === undefined) throw new Error("nobody is called");
    simulator.cloud.leaveAfter = 1;
    const task = simulator.phone.say(PHRASES.slow);
    await task.waitUntilSettled();
    expect(task.ending).toBe("left");
    expect(await simulator.phone.cancel()).toBe("canceled");
    expect(await simulator.phone.cancel()).not.toBe("canceled");
    expect(simulator.violations).toEqual([]);
  });
});
