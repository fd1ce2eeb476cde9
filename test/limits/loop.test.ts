import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import type { RemoteAgent } from "../../src/core/client/options.ts";
import type { StreamEvent } from "../../src/core/model/event.ts";
import type { Hops } from "../../src/core/model/extensions.ts";
import { textOf } from "../../src/core/model/message.ts";
import { type DragomanServer, serve } from "../../src/index.ts";
import { INTERFACES, speaking } from "./interfaces.ts";

/** Ends the test where the product does not. */
const MAX_VISITS = 30;
const REFUSED = "refused: The request came through 9 agents, more than the 8 allowed.";

/**
 * Two servers whose agents call each other, and pass on nothing of how they were called. A message is how to call, how
 * often still, and a name.
 */
describe.each(INTERFACES)("agents that call each other by $dialect over $binding", (spoken) => {
  const servers: DragomanServer[] = [];
  const visits: { readonly name: string; readonly hops: Hops }[] = [];
  const kept: Record<string, RemoteAgent> = {};
  const url: Record<string, string> = {};

  const connectTo = (server: string) => speaking(url[server] ?? "", spoken);
  const hopsOf = (name: string) => visits.filter((visit) => visit.name === name).map(({ hops }) => hops.hops);

  const ways: Record<string, (server: string, text: string) => Promise<StreamEvent>> = {
    send: async (server, text) => (await connectTo(server)).send(text),
    kept: async (server, text) => (kept[server] as RemoteAgent).send(text),
    stream: async (server, text) => lastOf((await connectTo(server)).stream(text)),
  };

  async function passOn(next: string, text: string, hops: Hops): Promise<string> {
    const [way = "", count = "", name = ""] = text.split(" ");
    visits.push({ name, hops });
    if (count === "0" || visits.length > MAX_VISITS) return `the end of ${name}`;
    const left = count === "forever" ? count : Number(count) - 1;
    return answerOf(() => ways[way]?.(next, `${way} ${left} ${name}`));
  }

  const agents = {
    one: defineAgent({
      name: "One",
      description: "Passes on what it is sent.",
      run: (turn) => passOn("two", turn.text, turn.hops),
    }),
    two: defineAgent({
      name: "Two",
      description: "Passes on what it is sent, after it has yielded.",
      async *run(turn) {
        yield turn.working("Passing it on");
        yield turn.completed(await passOn("one", turn.text, turn.hops));
      },
    }),
  };

  beforeAll(async () => {
    for (const [name, agent] of Object.entries(agents)) {
      const server = await serve({ port: 0, log: false, agents: { [name]: agent } });
      servers.push(server);
      url[name] = server.url;
      kept[name] = await connectTo(name);
    }
  });
  beforeEach(() => {
    visits.length = 0;
  });
  afterAll(async () => {
    for (const server of servers) await server.close();
  });

  it.each(Object.keys(ways))("are stopped at the limit: %s", async (way) => {
    const answer = await answerOf(() => kept.one?.send(`${way} forever ring`));
    expect([answer, hopsOf("ring")]).toEqual([REFUSED, [0, 1, 2, 3, 4, 5, 6, 7, 8]]);
  });

  it("receive who called before them where they know what that means", async () => {
    await kept.one?.send("send 3 ring");
    const ring = [`${url.one}/agents/one`, `${url.two}/agents/two`];
    // Cards of the oldest dialects have no extensions.
    const declares = kept.one?.card.capabilities.extensions?.length ?? 0;
    expect(visits.at(-1)?.hops.ancestors).toEqual(declares > 0 ? [...ring, ...ring] : ring.slice(1));
  });

  it("may visit each other again within the limit, each run for itself", async () => {
    const names = ["a", "b", "c", "d"];
    const answers = await Promise.all(names.map((name) => answerOf(() => kept.one?.send(`kept 5 ${name}`))));
    expect(answers).toEqual(names.map((name) => `the end of ${name}`));
    for (const name of names) expect(hopsOf(name)).toEqual([0, 1, 2, 3, 4, 5]);
  });
});

async function lastOf(events: ReturnType<RemoteAgent["stream"]>): Promise<StreamEvent> {
  let last: StreamEvent | undefined;
  for await (const { event } of events) last = event;
  if (last === undefined) throw new Error("Nothing came.");
  return last;
}

/** The text of a message, or of the status that a task ended with; a refusal as text, so that it can be passed back. */
async function answerOf(call: () => Promise<StreamEvent> | undefined): Promise<string> {
  try {
    const event = await call();
    if (event === undefined || "artifactUpdate" in event) return "";
    if ("message" in event) return textOf(event.message.parts);
    const { status } = "task" in event ? event.task : event.statusUpdate;
    return textOf(status.message?.parts ?? []);
  } catch (error) {
    return `refused: ${(error as Error).message}`;
  }
}
