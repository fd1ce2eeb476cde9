import { describe, expect, test } from "vitest";
import { fieldsOf } from "../../../../core/model/json.ts";
import { artifact, status } from "../testing/raw-agent.ts";
import { createStage, rulesOf, waitForViolations } from "../testing/stage.ts";

const stage = createStage();
const LONG = "x".repeat(3000);

describe("duplicates", () => {
  test("are the same byte for byte", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    simulator.faults.duplicate(2);
    simulator.phone.say("hello");
    await agent.until(() => agent.texts.length === 3);
    expect(new Set(agent.texts).size).toBe(1);
    simulator.faults.duplicate(0);
    simulator.faults.repeatLast();
    await agent.until(() => agent.texts.length === 4);
    expect(new Set(agent.texts).size).toBe(1);
  });

  test("answered twice are caught", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    simulator.faults.duplicate(1);
    simulator.phone.say("hello");
    agent.respond(await agent.next(), artifact("a", "hello", { final: true }));
    agent.respond(await agent.next(), artifact("b", "hello", { final: true }));
    await waitForViolations(simulator, 1);
    expect(rulesOf(simulator)).toEqual(["two-finals"]);
  });

  test("anything can be sent", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    simulator.faults.send('{"msgType":"surprise"}');
    expect(await agent.next()).toEqual({ msgType: "surprise" });
  });
});

describe("reordering", () => {
  test("lets an end overtake the long body before it", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    simulator.faults.reorder();
    const task = simulator.phone.say("hello");
    const request = await agent.next();
    agent.respond(request, artifact("a", LONG));
    agent.respond(request, status("completed", { final: true }));
    await task.waitUntilSettled();
    expect(task.screen().text).toBe("");
    await stage.clock.advance(250);
    expect(rulesOf(simulator)).toEqual(["content-after-final"]);
  });

  test("does not hurt an agent that waits, nor short bodies", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    simulator.faults.reorder();
    const task = simulator.phone.say("hello");
    const request = await agent.next();
    agent.respond(request, artifact("a", LONG));
    agent.socket.ping();
    await agent.until(() => agent.pongs === 1);
    await stage.clock.advance(300);
    agent.respond(request, artifact("b", "and more", { append: true }));
    agent.respond(request, status("completed", { final: true }));
    await task.waitUntilSettled();
    expect(task.screen().text).toBe(`${LONG}and more`);
    expect(simulator.violations).toEqual([]);
    simulator.faults.inOrder();
    const next = simulator.phone.say("again");
    const second = await agent.next();
    agent.respond(second, artifact("c", LONG));
    agent.respond(second, status("completed", { final: true }));
    await next.waitUntilSettled();
    expect(next.screen().text).toBe(LONG);
  });
});

describe("two servers", () => {
  test("say the same, and either may be answered", async () => {
    const simulator = await stage.simulate({ hosts: 2 });
    const agents = [await stage.join(simulator, 0), await stage.join(simulator, 1)];
    await simulator.ready();
    expect(agents.map(({ closure }) => closure)).toEqual([undefined, undefined]);
    const task = simulator.phone.say("hello");
    const [first, second] = await Promise.all(agents.map((agent) => agent.next()));
    expect(second).toEqual(first);
    agents[1]?.respond(second ?? {}, artifact("a", "hello", { final: true }));
    await task.waitUntilSettled();
    expect(simulator.violations).toEqual([]);
  });

  test("or share conversations, each of which is answered where it came from", async () => {
    const simulator = await stage.simulate({ hosts: 2, spread: "partition" });
    const [main, backup] = [await stage.join(simulator, 0), await stage.join(simulator, 1)];
    const tasks = [simulator.phone.say("one"), simulator.addPhone().say("two")];
    const [one, two] = [await main.next(), await backup.next()];
    expect([fieldsOf(one.params).id, fieldsOf(two.params).id]).toEqual(tasks.map(({ id }) => id));
    main.respond(two, artifact("a", "astray", { final: true }));
    await waitForViolations(simulator, 1);
    expect(rulesOf(simulator)).toEqual(["wrong-host"]);
    backup.respond(two, artifact("a", "2", { final: true }));
    main.respond(one, artifact("a", "1", { final: true }));
    await Promise.all(tasks.map((task) => task.waitUntilSettled()));
    expect(tasks.map((task) => task.screen().text)).toEqual(["1", "2"]);
    simulator.phone.say("again");
    expect(fieldsOf((await main.next()).params).sessionId).toBe(simulator.phone.conversationId);
  });

  test("and one stands in for the other", async () => {
    const simulator = await stage.simulate({ hosts: 2, spread: "partition" });
    const [main, backup] = [await stage.join(simulator, 0), await stage.join(simulator, 1)];
    const gone = new Promise<void>((resolve) => {
      simulator.subscribe((event) => {
        if (event.kind === "connection" && event.connection.kind === "closed") resolve();
      });
    });
    main.socket.terminate();
    await gone;
    const tasks = [simulator.phone.say("one"), simulator.addPhone().say("two")];
    const ids = [fieldsOf((await backup.next()).params).id, fieldsOf((await backup.next()).params).id];
    expect(ids).toEqual(tasks.map(({ id }) => id));
  });
});

describe("an end that comes again over the next connection", () => {
  const DONE = status("completed", { final: true });

  test.each(["kick", "drop", "cut"] as const)("is ignored if the agent could not know: %s", async (how) => {
    const simulator = await stage.simulate();
    const first = await stage.join(simulator);
    const task = simulator.phone.say("hello");
    const request = await first.next();
    first.respond(request, DONE);
    await task.waitUntilSettled();
    simulator.faults[how]();
    await first.closed();
    const second = await stage.join(simulator);
    second.respond(request, artifact("a", "hello"));
    second.respond(request, DONE);
    await task.waitUntil(({ repeated }) => repeated === 2);
    expect([task.finals, rulesOf(simulator)]).toEqual([1, []]);
  });

  test("is caught if a ping showed that it had come, or if it comes over the same one", async () => {
    const simulator = await stage.simulate();
    const first = await stage.join(simulator);
    const task = simulator.phone.say("hello");
    const request = await first.next();
    first.respond(request, DONE);
    first.respond(request, DONE);
    await waitForViolations(simulator, 1);
    first.socket.ping();
    await first.until(() => first.pongs === 1);
    simulator.faults.kick();
    await first.closed();
    const second = await stage.join(simulator);
    second.respond(request, DONE);
    await waitForViolations(simulator, 2);
    expect([task.repeated, rulesOf(simulator)]).toEqual([0, ["two-finals", "two-finals"]]);
  });
});
