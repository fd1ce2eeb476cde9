import { describe, expect, test } from "vitest";
import { sign } from "../authentication.ts";
import { signedHeaders, tryUpgrade } from "../testing/raw-agent.ts";
import { createStage, rulesOf, waitForViolations } from "../testing/stage.ts";

const stage = createStage();

test.each([
  ["2e3b71f5def64d95a727314f028bf5aa", "1547630863716", "6lFqepUu79KSxVCsrXyB/aLVFIdutsTLLx1cZjxDE4I="],
  ["xiaoyi-secret-key", "1785024000000", "rBiSv+0iYT8NxcMGavPxZTwQTwGf6XejK68CexsG2CI="],
])("signs as published: %s at %s", (secretKey, timestamp, signature) => {
  expect(sign(secretKey, timestamp)).toBe(signature);
});

describe("an upgrade", () => {
  const signed = async () => {
    const simulator = await stage.simulate();
    return { simulator, url: simulator.linkUrls[0] ?? "", headers: signedHeaders(simulator.agent, stage.clock.now()) };
  };

  test("with the four headers goes through", async () => {
    const { headers, simulator, url } = await signed();
    expect(await tryUpgrade(url, headers)).toBeUndefined();
    expect(simulator.violations).toEqual([]);
  });

  test.each(["x-access-key", "x-sign", "x-ts", "x-agent-id"])("without %s is refused with 401", async (name) => {
    const { headers, simulator, url } = await signed();
    const { [name]: _left, ...rest } = headers;
    expect(await tryUpgrade(url, rest)).toBe(401);
    expect(rulesOf(simulator)).toEqual(["upgrade-refused"]);
  });

  test.each([
    ["an unknown access key", { "x-access-key": "nobody" }, 401],
    ["a signature of something else", { "x-sign": sign("other", "1") }, 401],
    ["a time that is none", { "x-ts": "yesterday" }, 401],
    ["somebody else's agent", { "x-agent-id": "another" }, 403],
  ])("with %s is refused", async (_what, changes, status) => {
    const { headers, simulator, url } = await signed();
    expect(await tryUpgrade(url, { ...headers, ...changes })).toBe(status);
    expect(rulesOf(simulator)).toEqual(["upgrade-refused"]);
    expect(simulator.violations[0]?.detail).not.toContain(simulator.agent.secretKey);
  });

  test.each([
    [-15 * 60_000, 401],
    [-15 * 60_000 + 1, undefined],
    [15 * 60_000 - 1, undefined],
    [15 * 60_000, 401],
  ])("signed %i ms off gets %s", async (offset, status) => {
    const { simulator, url } = await signed();
    expect(await tryUpgrade(url, signedHeaders(simulator.agent, stage.clock.now() + offset))).toBe(status);
  });

  test("the window can be chosen", async () => {
    const simulator = await stage.simulate({ skewMs: 1000 });
    const headers = signedHeaders(simulator.agent, stage.clock.now() - 1000);
    expect(await tryUpgrade(simulator.linkUrls[0] ?? "", headers)).toBe(401);
  });

  test("two agents of one owner are distinguished, one of another owner is not theirs", async () => {
    const one = { agentId: "one", accessKey: "alice", secretKey: "sesame" };
    const other = { agentId: "other", accessKey: "bob", secretKey: "hush" };
    const simulator = await stage.simulate({ agents: [one, { ...one, agentId: "two" }, other] });
    const [url = ""] = simulator.linkUrls;
    const upgrade = (agentId: string) => tryUpgrade(url, signedHeaders({ ...one, agentId }, stage.clock.now()));
    expect([await upgrade("one"), await upgrade("two"), await upgrade("other")]).toEqual([undefined, undefined, 403]);
  });

  test("with user id and API key goes through, with a wrong one or without its origin it does not", async () => {
    const { simulator, url } = await signed();
    const { agentId, apiKey = "", uid = "" } = simulator.agent;
    const headers = { "x-uid": uid, "x-api-key": apiKey, "x-agent-id": agentId, "x-request-from": "openclaw" };
    expect(await tryUpgrade(url, headers)).toBeUndefined();
    expect(await tryUpgrade(url, { ...headers, "x-api-key": "wrong" })).toBe(401);
    expect(await tryUpgrade(url, { ...headers, "x-uid": "wrong" })).toBe(401);
    expect(await tryUpgrade(url, { ...headers, "x-request-from": "elsewhere" })).toBe(401);
    expect(await tryUpgrade(url, { ...headers, "x-agent-id": "another" })).toBe(403);
  });

  test("elsewhere finds nothing", async () => {
    const { headers, url } = await signed();
    expect(await tryUpgrade(url.replace("/link", "/chain"), headers)).toBe(404);
  });

  test("is refused at will", async () => {
    const { headers, simulator, url } = await signed();
    simulator.faults.refuse(503);
    expect(await tryUpgrade(url, headers)).toBe(503);
    simulator.faults.refuse();
    expect(await tryUpgrade(url, headers)).toBeUndefined();
    expect(simulator.violations).toEqual([]);
  });
});

describe("a connection", () => {
  test("is not acknowledged", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    agent.socket.ping();
    await agent.until(() => agent.pongs === 1);
    expect(agent.frames).toEqual([]);
  });

  test("takes what may stand in the introduction", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.dial(simulator);
    const msgDetail = JSON.stringify({ agentId: agent.agentId, hostname: "here" });
    agent.send({ msgType: "clawd_bot_init", agentId: agent.agentId, msgDetail });
    await simulator.ready();
    expect(simulator.violations).toEqual([]);
  });

  test("is closed if a heartbeat comes before the introduction", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.dial(simulator);
    agent.send({ msgType: "heartbeat", agentId: agent.agentId });
    expect(await agent.closed()).toMatchObject({ code: 1008 });
    expect(rulesOf(simulator)).toEqual(["init-first"]);
  });

  test("is closed if JSON-RPC comes instead of the introduction", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.dial(simulator);
    agent.send({ jsonrpc: "2.0", id: 1, result: {} });
    expect(await agent.closed()).toMatchObject({ code: 1008 });
    expect(rulesOf(simulator)).toEqual(["init-first"]);
  });

  test("is closed if nothing comes instead of the introduction", async () => {
    const simulator = await stage.simulate();
    const silent = await stage.dial(simulator);
    await stage.clock.advance(10_000);
    expect(await silent.closed()).toMatchObject({ code: 1008 });
    expect(rulesOf(simulator)).toEqual(["init-first"]);
    const polite = await stage.join(simulator);
    await stage.clock.advance(10_000);
    expect([polite.closure, rulesOf(simulator)]).toEqual([undefined, ["init-first"]]);
  });

  test("is closed for a frame beyond all measure", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    agent.send("x".repeat(16 * 1024 * 1024 + 1));
    expect(await agent.closed()).toMatchObject({ code: 1009 });
    expect(rulesOf(simulator)).toEqual(["not-a-frame"]);
  });

  test("ends with the platform, after everything the agent has asked was answered", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    const closing = simulator.close();
    agent.socket.ping();
    await closing;
    expect(await agent.closed()).toMatchObject({ code: 1001 });
    expect(agent.pongs).toBe(1);
  });

  test("or ignores it, if configured to", async () => {
    const simulator = await stage.simulate({ beforeInit: "ignore" });
    const agent = await stage.dial(simulator);
    agent.send({ msgType: "agent_response", agentId: agent.agentId });
    agent.init();
    await simulator.ready();
    expect(rulesOf(simulator)).toEqual(["init-first"]);
  });

  test("sends nothing for heartbeats, unless configured to", async () => {
    for (const echoHeartbeat of [false, true]) {
      const simulator = await stage.simulate({ echoHeartbeat });
      const agent = await stage.join(simulator);
      agent.send({ msgType: "heartbeat", agentId: agent.agentId, msgDetail: '{"timestamp":1}' });
      agent.socket.ping();
      await agent.until(() => agent.pongs === 1);
      expect(agent.frames).toEqual(echoHeartbeat ? [{ msgType: "heartbeat", agentId: agent.agentId }] : []);
      expect(simulator.violations).toEqual([]);
    }
  });

  test("is closed when nothing comes for long, and pings count", async () => {
    const simulator = await stage.simulate({ idleMs: 60_000 });
    const agent = await stage.join(simulator);
    await stage.clock.advance(50_000);
    agent.socket.ping();
    await agent.until(() => agent.pongs === 1);
    await stage.clock.advance(50_000);
    expect(agent.closure).toBeUndefined();
    await stage.clock.advance(10_000);
    expect(await agent.closed()).toMatchObject({ code: 1000, reason: "idle" });
  });

  test("that is frozen answers no ping", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    simulator.faults.freeze();
    agent.socket.ping();
    agent.send("nonsense");
    const other = await stage.join(await stage.simulate());
    other.socket.ping();
    await other.until(() => other.pongs === 1);
    expect(agent.pongs).toBe(0);
    expect(simulator.violations).toEqual([]);
  });

  test("is closed with 1000 when the agent connects again", async () => {
    const simulator = await stage.simulate();
    const older = await stage.join(simulator);
    const newer = await stage.join(simulator);
    expect(await older.closed()).toMatchObject({ code: 1000 });
    const task = simulator.phone.say("hello");
    expect(await newer.next()).toMatchObject({ params: { id: task.id } });
    expect(older.frames).toEqual([]);
  });

  test("keeps the older one, if configured to", async () => {
    const simulator = await stage.simulate({ secondConnection: "refuse" });
    const older = await stage.join(simulator);
    const newer = await stage.dial(simulator);
    expect(await newer.closed()).toMatchObject({ code: 1000 });
    expect(older.closure).toBeUndefined();
    older.socket.terminate();
    await older.closed();
    await stage.join(simulator);
  });

  test.each([
    ["kick", 1000],
    ["drop", 1006],
    ["cut", 1006],
  ] as const)("ends by %s, which agents see as %i", async (how, code) => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    simulator.faults[how]();
    expect(await agent.closed()).toMatchObject({ code });
    await stage.join(simulator);
  });

  test("still reads what was sent before it was kicked or dropped", async () => {
    for (const how of ["kick", "drop"] as const) {
      const simulator = await stage.simulate();
      const agent = await stage.join(simulator);
      agent.send("one");
      agent.send("two");
      simulator.faults[how]();
      await waitForViolations(simulator, 2);
      await agent.closed();
    }
  });
});
