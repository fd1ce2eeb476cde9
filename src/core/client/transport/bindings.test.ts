/** A task begun over one binding is followed over any other: the numbers of its log are the same everywhere. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { type ClientEvent, connect, type RemoteAgent } from "../../../client.ts";
import { defineAgent } from "../../agents/define.ts";
import { isTextPart } from "../../model/message.ts";
import { type DragomanServer, serve } from "../../server/serve.ts";
import { collect } from "../testing/fake-agent.ts";

let open = (): void => {};
let gate: Promise<void>;

/** Says two words, waits for the test, says two more. */
const agent = defineAgent({
  name: "Waiting",
  description: "Waits in the middle.",
  async *run(turn) {
    yield turn.artifact({ name: "words", parts: [{ text: "one " }] });
    yield turn.artifact({ name: "words", parts: [{ text: "two " }], append: true });
    await gate;
    yield turn.artifact({ name: "words", parts: [{ text: "three " }], append: true });
    yield turn.artifact({ name: "words", parts: [{ text: "four" }], append: true });
  },
});

const WAYS = ["JSONRPC 1.0", "HTTP+JSON 1.0", "GRPC 1.0", "JSONRPC 0.3", "HTTP+JSON 0.3", "GRPC 0.3"] as const;
type Way = (typeof WAYS)[number];

let server: DragomanServer;
const agents = new Map<Way, RemoteAgent>();

beforeAll(async () => {
  server = await serve({ port: 0, store: "memory:", agents: { waiting: agent } });
  for (const way of WAYS) {
    const [binding = "", version = ""] = way.split(" ");
    agents.set(way, await connect(server.url, { binding, version }));
  }
});
afterAll(async () => {
  await server.close();
});

function by(way: Way): RemoteAgent {
  return agents.get(way) as RemoteAgent;
}

function words(events: readonly ClientEvent[]): string {
  return events
    .flatMap(({ event }) => ("artifactUpdate" in event ? event.artifactUpdate.artifact.parts : []))
    .map((part) => (isTextPart(part) ? part.text : ""))
    .join("");
}

const pairs = WAYS.flatMap((one) => WAYS.map((other) => [one, other] as const));

test.each(pairs)("begun over %s, followed over %s", async (one, other) => {
  gate = new Promise((resolve) => {
    open = resolve;
  });
  const begun: ClientEvent[] = [];
  let id = "";
  for await (const event of by(one).stream("go")) {
    begun.push(event);
    if ("task" in event.event) id = event.event.task.id;
    if (words(begun).endsWith("two ")) break;
  }
  const after = begun.at(-1)?.number;
  expect(after).toBeGreaterThan(1);
  const following = collect(by(other).subscribe(id, { after: after as number }));
  open();
  const followed = await following;
  const numbers = [...begun, ...followed].map(({ number }) => number);
  expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => index + 1));
  expect(words([...begun, ...followed])).toBe("one two three four");
  expect(await by(one).get(id)).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" } });
});

test.each([
  ["a2a-v01", "0.1"],
  ["tasks-rest", "1"],
] as const)("what no list of interfaces names can be asked for: %s", async (dialect, version) => {
  gate = Promise.resolve();
  for (const wish of [{ dialect }, { version }]) {
    const old = await connect(server.url, wish);
    expect(old.interface).toMatchObject({ dialect, version });
    const events = await collect(old.stream("go"));
    expect(words(events)).toBe("one two three four");
    expect(JSON.stringify(events.at(-1))).toContain("TASK_STATE_COMPLETED");
    const outcome = await old.send("go");
    const { id } = "task" in outcome ? outcome.task : { id: "" };
    expect(await by("GRPC 1.0").get(id)).toMatchObject({ id, status: { state: "TASK_STATE_COMPLETED" } });
  }
});

test("the card's first interface is used, and every operation works over gRPC", async () => {
  gate = Promise.resolve();
  const preferred = await connect(server.url);
  expect(preferred.interface).toMatchObject({ dialect: "a2a-v1", version: "1.0" });
  const grpc = by("GRPC 1.0");
  const outcome = await grpc.send("go");
  const { id } = "task" in outcome ? outcome.task : { id: "" };
  expect((await grpc.get(id)).status.state).toBe("TASK_STATE_COMPLETED");
  expect((await collect(grpc.list())).map((task) => task.id)).toContain(id);
  await expect(grpc.cancel(id)).rejects.toMatchObject({ code: "TASK_NOT_CANCELABLE" });
  await expect(grpc.get("nothing")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  await expect(collect(grpc.subscribe("nothing"))).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
  await expect(by("GRPC 0.3").listPage()).rejects.toMatchObject({ code: "UNSUPPORTED_OPERATION" });
});
