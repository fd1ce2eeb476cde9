import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runInProcess } from "../../../core/cli/testing/run-in-process.ts";
import { matrix } from "../networks/matrix.ts";
import { SUITE_TOOLS } from "../networks/suite/channel-suite.ts";
import { type MatrixServer, startMatrixServer } from "../networks/testing/matrix-server.ts";
import { askForCard } from "./ask-for-card.ts";
import { PostReader } from "./post-reader.ts";

const ROOM = "!team:sim";
const cleanups: (() => unknown)[] = [];
let server: MatrixServer;
let token: string;
let folder: string;

beforeEach(async () => {
  server = await startMatrixServer({ rate: { burst: 1_000, perSecond: 1_000 } });
  cleanups.push(() => server.close());
  token = server.register("agent", "Agent");
  server.register("person");
  server.createRoom({ id: ROOM, members: ["@agent:sim", "@peer:sim", "@person:sim"] });
  server.createRoom({ id: "!elsewhere:sim", members: ["@person:sim"] });
  folder = await mkdtemp(join(tmpdir(), "dragoman-channels-test-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function configure(given = token, homeserver = server.url): string {
  const file = join(folder, "dragoman.yaml");
  const settings = `homeserver: "${homeserver}", token: "${given}", rooms: ["${ROOM}"]`;
  writeFileSync(file, `agents: { helper: { use: echo } }\nchannels:\n  - { matrix: { ${settings} }, agent: helper }\n`);
  return file;
}

function test(...args: readonly string[]) {
  return runInProcess("channels", "test", "matrix", ...args);
}

describe("channels test", () => {
  it("posts to the room, reads it back, edits it and sends a file", async () => {
    const { code, stdout, stderr } = await test("--config", configure());
    expect(stdout.split("\n").map((line) => line.replace(/: .*/, "").trim())).toEqual([
      "channels[0]",
      "ok       connect",
      "ok       abilities",
      `ok       post to ${ROOM}`,
      `ok       read back from ${ROOM}`,
      `ok       edit in ${ROOM}`,
      `ok       file to ${ROOM}`,
      `ok       delete in ${ROOM}`,
      "",
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    // What is left of the two posts; the edit is an event of its own.
    const contents = server.messages.map(({ content }) => content).filter((content) => !("m.new_content" in content));
    expect(contents).toEqual([{}, {}]);
  });

  it("is JSON on request, without the token", async () => {
    const { code, stdout } = await test("--config", configure(), "-o", "json");
    const { steps, ...result } = JSON.parse(stdout);
    expect(result).toEqual({ entry: "channels[0]", network: "matrix", agent: "helper", healthy: true });
    expect(steps[0]).toEqual({ name: "connect", status: "ok", detail: "as Agent (@agent:sim)" });
    expect(stdout).not.toContain(token);
    expect(code).toBe(0);
  });

  it("ends with 4 if the network refuses the credentials, and does not show them", async () => {
    const { code, stdout, stderr } = await test("--config", configure("syt_wrong_token"));
    expect(stdout).toContain("failed   connect: ");
    expect(stdout + stderr).not.toContain("syt_wrong_token");
    expect(code).toBe(4);
  });

  it("ends with 5 if the network does not answer in time", async () => {
    const silent = createServer(() => {}).listen(0, "127.0.0.1");
    cleanups.push(() => silent.close());
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const { code, stdout } = await test("--config", configure(token, `http://127.0.0.1:${port}`), "--timeout", "50ms");
    expect(stdout).toContain("failed   connect: Timed out after 0.05 s.");
    expect(code).toBe(5);
  });

  it("ends with 1 if it may not post in a room, and says what to check", async () => {
    const { code, stdout } = await test("--config", configure(), "--room", "!elsewhere:sim");
    expect(stdout).toMatch(/failed {3}post to !elsewhere:sim: .*is the agent a member that may post there\?/);
    expect(code).toBe(1);
  });

  it("asks a peer for its card", async () => {
    const peer = await matrix.open(
      { homeserver: server.url, token: server.register("peer", "Peer"), rooms: [ROOM] },
      { cursors: new Map(), signal: new AbortController().signal },
      SUITE_TOOLS,
    );
    cleanups.push(() => peer.close());
    void (async () => {
      for await (const { id, sender, text } of peer.posts) {
        if (!sender.self && text.includes("[A2A:discover")) {
          await peer.post({ room: ROOM, replyTo: id, text: "[A2A:card]\nI am Peer.\n```json\n{}\n```" });
        }
      }
    })();
    const { code, stdout } = await test("--config", configure(), "--peer", "@peer:sim");
    expect(stdout).toContain("ok       card: @peer:sim answered");
    expect(stdout).toContain("I am Peer.");
    expect(code).toBe(0);
  });

  it("does not wait longer for a card than it may", async () => {
    const signal = new AbortController().signal;
    const settings = { homeserver: server.url, token, rooms: [ROOM] };
    const channel = await matrix.open(settings, { cursors: new Map(), signal }, SUITE_TOOLS);
    cleanups.push(() => channel.close());
    const reader = new PostReader(channel);
    const asked = { channel, reader, room: ROOM, peer: "@person:sim", timeoutMs: 50, signal };
    expect(await askForCard(asked)).toBeUndefined();
    expect(server.messages.at(-1)).toMatchObject({
      content: { body: expect.stringContaining("[A2A:discover to=@person:sim from=@agent:sim]") },
    });
  });
});
