import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineAgent } from "../../src/agents/define.ts";
import { connect } from "../../src/client/connect.ts";
import type { Hops } from "../../src/model/hops.ts";
import { type DragomanServer, serve } from "../../src/server/serve.ts";

/** Two servers whose agents ask each other, for ever if nobody stops them. */
describe("agents that call each other", () => {
  const servers: DragomanServer[] = [];
  const ways: Hops[] = [];
  const url: Record<string, string> = {};

  function asking(name: string, next: () => string) {
    return defineAgent({
      name,
      description: "Asks the other.",
      async run(turn) {
        ways.push(turn.hops);
        const other = await connect(next(), { hops: turn.hops });
        try {
          await other.send("and you?");
          return "answered";
        } catch (error) {
          return `refused: ${(error as Error).message}`;
        }
      },
    });
  }

  beforeAll(async () => {
    const one = asking("One", () => url.two ?? "");
    const two = asking("Two", () => url.one ?? "");
    for (const [name, agent] of Object.entries({ one, two })) {
      const server = await serve({ port: 0, log: false, grpcPort: false, agents: { [name]: agent } });
      servers.push(server);
      url[name] = server.url;
    }
  });
  afterAll(async () => {
    for (const server of servers) await server.close();
  });

  it("are stopped when the circle closes", async () => {
    const agent = await connect(url.one ?? "");
    await agent.send("begin");
    const [first, second, third, fourth, ...more] = ways;
    const ids = [`${url.one}/agents/one`, `${url.two}/agents/two`];
    expect(first).toEqual({ hops: 0, ancestors: ids.slice(0, 1) });
    expect(second).toEqual({ hops: 1, ancestors: ids });
    expect(third?.hops).toBe(2);
    expect(fourth).toEqual({ hops: 3, ancestors: [...ids, ...ids] });
    expect(more).toEqual([]);
  });
});
