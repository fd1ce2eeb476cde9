import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import type { ChannelOptions } from "../../../core/wire/channel.ts";
import { describeChannel, readPosts, SUITE_TOOLS } from "./suite/channel-suite.ts";
import { createTerminal } from "./terminal.ts";

function openConsole() {
  const input = new PassThrough();
  const output = new PassThrough({ encoding: "utf8" });
  const network = createTerminal(() => ({ input, output }));
  const options: ChannelOptions = { cursors: new Map(), signal: new AbortController().signal };
  const join = (name: string, more: ChannelOptions = options) =>
    network.open(network.settings.parse({ name }), more, SUITE_TOOLS);
  return { input, output, join };
}

describeChannel("terminal", {
  abilities: { edits: false, files: false, history: false, lines: true, replies: false, seesBots: "all" },
  has: { credentials: false, direct: false, foreignRoom: true, rateLimit: false, server: false },
  async stage() {
    const { join } = openConsole();
    return {
      room: "terminal",
      join: (options) => join("alice", options),
      joinPeer: () => join("bob"),
      foreignRoom: "elsewhere",
      stop: async () => {},
      close: async () => {},
    };
  },
});

describe("the console", () => {
  it("hands lines to the only agent as direct messages of you", async () => {
    const { input, join } = openConsole();
    const alice = await join("alice");
    input.write("hello\n\n  \n");
    const sender = { id: "you", name: "you", bot: false, self: false, verified: true };
    expect(await readPosts(alice).next()).toMatchObject({ direct: true, room: "terminal", sender, text: "hello" });
    alice.close();
  });

  it("hands lines to all agents, of whom one is addressed", async () => {
    const { input, join } = openConsole();
    const [alice, bob] = [await join("alice"), await join("bob")];
    input.write("bob: hello\n");
    expect(await readPosts(alice).next()).toMatchObject({ direct: false, mentions: [] });
    expect(await readPosts(bob).next()).toMatchObject({ direct: false, mentions: ["bob"] });
    input.write("@alice and @bob, hello\n");
    expect((await readPosts(alice).next()).mentions).toEqual(["alice", "bob"]);
    alice.close();
    bob.close();
  });

  it("shows the posts of agents, without escape sequences", async () => {
    const { join, output } = openConsole();
    const alice = await join("alice");
    await alice.post({ room: "terminal", text: "one\n\u001b[2Jtwo", mentions: [{ id: "you", name: "you" }] });
    expect(output.read()).toBe("alice: @you one\n  [2Jtwo\n");
    alice.close();
  });

  it("has every name once", async () => {
    const { join } = openConsole();
    const alice = await join("alice");
    await expect(join("alice")).rejects.toMatchObject({ failure: "refused" });
    alice.close();
    await alice.closed;
    (await join("alice")).close();
  });
});
