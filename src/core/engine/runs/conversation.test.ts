import { describe, expect, test } from "vitest";
import type { JsonValue } from "../../model/json.ts";
import type { Turn } from "../agent.ts";
import { agentOf, inputText } from "../testing/agents.ts";
import { settle } from "../testing/fake-clock.ts";
import { Harness } from "../testing/harness.ts";
import { createConversation } from "./conversation.ts";

/** Remembers every message, and answers with all of them. */
const listener = agentOf(
  async function* (turn: Turn) {
    await turn.conversation?.append("said", inputText(turn));
    yield { artifact: { artifactId: "a", parts: [{ data: (await turn.conversation?.get("said")) ?? null }] } };
    if (inputText(turn) === "die" && turn.attempt === 1) await new Promise(() => {});
  },
  { onCrash: "resume" },
);

async function tell(harness: Harness, text: string, contextId: string): Promise<unknown> {
  const task = await harness.task(text, { contextId });
  return task.artifacts?.[0]?.parts[0];
}

describe("the memory of a conversation", () => {
  test("is shared by the tasks of a context, and by no other; tasks at the same time lose nothing", async () => {
    const harness = await Harness.start({ agent: listener });
    expect(await tell(harness, "one", "c1")).toEqual({ data: ["one"] });
    expect(await tell(harness, "two", "c1")).toEqual({ data: ["one", "two"] });
    expect(await tell(harness, "three", "c2")).toEqual({ data: ["three"] });
    await Promise.all(["a", "b", "c", "d"].map((text) => tell(harness, text, "c3")));
    const last = (await tell(harness, "e", "c3")) as { data: string[] };
    expect(last.data.sort()).toEqual(["a", "b", "c", "d", "e"]);
  });

  test("outlasts a crash, and has nothing twice although the run is repeated", async () => {
    const first = await Harness.start({ agent: listener });
    await tell(first, "one", "c1");
    const { id } = await first.begin("die", { contextId: "c1" });
    await settle();
    first.crash();
    await first.clock.advance(15_001);
    const second = await Harness.start({ agent: listener, after: first });
    await settle(20);
    expect((await second.get(id)).artifacts?.[0]?.parts).toEqual([{ data: ["one", "die"] }]);
  });

  test("has values beside lists, and stays within its bounds", async () => {
    const stored = new Map<string, string>();
    const open = (owner: string, origin = "t1") =>
      createConversation({
        records: {
          record: async (space, key) => stored.get(space + key),
          async update({ space, key }, change) {
            stored.set(space + key, change(stored.get(space + key)) ?? "");
          },
        },
        agent: "a",
        owner,
        contextId: "c",
        origin,
        whenFlushed: async () => {},
      });
    const own = open("alice");
    await own.set("name", "Ada");
    await own.set("__proto__", { a: 1 });
    await own.set("list", ["x"]);
    await own.append("list", "y");
    expect(await own.get("list")).toEqual(["x", "y"]);
    expect([await own.get("name"), await own.get("__proto__"), await own.get("toString")]).toEqual([
      "Ada",
      { a: 1 },
      undefined,
    ]);
    expect(await open("bob").get("name")).toBeUndefined();
    await expect(own.append("name", "x")).rejects.toThrow('the value of "name" is not a list');
    await own.set("name", undefined);
    expect(await own.get("name")).toBeUndefined();

    const long = "x".repeat(60_000);
    for (let number = 0; number < 8; number++) await open("alice", `t${number + 2}`).append("list", [number, long]);
    const kept = (await own.get<[number, string][]>("list")) as JsonValue[][];
    expect(kept.map(([number]) => number)).toEqual([4, 5, 6, 7]);
    await expect(own.append("list", "x".repeat(200_000))).rejects.toThrow(RangeError);
    await expect(own.set("other", "x".repeat(300_000))).rejects.toThrow(RangeError);
    stored.set([...stored.keys()][0] as string, "damaged");
    expect(await own.get("list")).toBeUndefined();
  });
});
