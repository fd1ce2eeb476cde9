/** Agents in a chat room are called from the command line, over an account that ./dragoman.yaml has. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { runCli, stopAll } from "../../src/core/cli/testing/run-cli.ts";
import { startMatrixServer } from "../../src/features/chat/networks/testing/matrix-server.ts";
import { closeLater, createFolder, startServer } from "../support/lifecycle.ts";
import { RAW_NETWORKS } from "./raw-peers.ts";
import { startInRoom } from "./stage.ts";
import { translator } from "./translator.ts";

const ROOM = "!team:sim";
const ADDRESS = `a2a-lite:matrix/${ROOM}#@agent:sim`;

afterAll(stopAll);

async function open() {
  const server = await startMatrixServer({ rate: { burst: 1_000, perSecond: 1_000 } });
  closeLater(() => server.close());
  const account = (name: string) => ({ homeserver: server.url, token: server.register(name), rooms: [ROOM] });
  const [agent, me] = [account("agent"), account("me")];
  server.createRoom({ id: ROOM, members: ["@agent:sim", "@me:sim", "@person:sim"] });
  await startInRoom({
    agents: { translator },
    channels: [{ matrix: agent, agent: "translator", allowPeers: ["@me:sim"], allowBots: true }],
  });
  const workingDirectory = createFolder();
  const configure = (settings: object) =>
    writeFileSync(
      join(workingDirectory, "dragoman.yaml"),
      `agents: { echo: { use: echo } }\nchannels: [${JSON.stringify({ ...settings, agent: "echo" })}]\n`,
    );
  configure({ matrix: me });
  const run = (...words: readonly string[]) => runCli([...words, "-a", ADDRESS], { workingDirectory });
  return { configure, me, run, server };
}

it("its card is shown, a task is sent, answered, left and cancelled", async () => {
  const { run, server } = await open();
  const [card, asked, again] = await Promise.all([
    run("card", "get"),
    run("send", "Translate the report."),
    run("send", "Translate the report."),
  ]);
  expect(card).toMatchObject({ code: 0, stderr: "" });
  expect(card.stdout).toContain("Translator");
  expect(card.stdout).toContain(ADDRESS);
  expect(card.stdout).not.toContain("none that is supported");

  for (const { stderr, stdout } of [asked, again]) expect(stdout + stderr).toContain("Into which language?");
  const bodies = () => server.messages.map(({ content }) => String(content.body)).join("\n");
  const [task = "", other = ""] = [...bodies().matchAll(/\[A2A:task id=(t-[\w-]+)/g)].map(([, id = ""]) => id);

  const [left, answered] = await Promise.all([run("task", "get", task), run("send", "French", "--task-id", other)]);
  expect(left.code).not.toBe(0);
  expect(left.stderr).toContain("In A2A-Lite only the process that sent a task can follow it.");

  const cancelled = await run("task", "cancel", task);
  expect(cancelled).toMatchObject({ code: 0 });
  expect(bodies()).toContain(`[A2A:result task=${task} state=cancelled`);

  expect(answered).toMatchObject({ code: 0, stdout: expect.stringContaining("In French:") });
  expect(answered.stdout).toContain("report.txt");
});

it("says what is missing", async () => {
  const { configure, me, run } = await open();
  configure({ matrix: { ...me, rooms: ["!other:sim"] } });
  const workingDirectory = createFolder();
  const [elsewhere, none, malformed] = await Promise.all([
    run("send", "Hello"),
    runCli(["send", "Hello", "-a", ADDRESS], { workingDirectory }),
    runCli(["send", "Hello", "-a", "a2a-lite:matrix"], { workingDirectory }),
  ]);
  expect(elsewhere.code).toBe(2);
  expect(elsewhere.stderr).toContain(`./dragoman.yaml has no account of matrix that is in ${ROOM}`);
  expect(elsewhere.stderr).toContain("dragoman channels show matrix");
  expect(none.code).toBe(2);
  expect(none.stderr).toContain("./dragoman.yaml has no account of matrix, over which the agent could be called.");
  expect(malformed.code).toBe(2);
  expect(malformed.stderr).toContain("a2a-lite:<network>/<room>#<participant>");
});

it.each(RAW_NETWORKS.filter(({ isAvailable, name }) => isAvailable && name !== "xmpp"))(
  "an agent on $name is called in the folder of its server, which stays connected",
  async (network) => {
    const room = await network.start();
    const person = await room.join("person");
    const channel = { ...room.settings("agent"), agent: "translator", allowPeers: "*" } as const;
    await startInRoom({ agents: { translator }, channels: [channel] });
    const workingDirectory = createFolder();
    const config = `agents: { translator: { use: echo } }\nchannels: [${JSON.stringify(channel)}]\n`;
    writeFileSync(join(workingDirectory, "dragoman.yaml"), config);
    const address = `a2a-lite:${network.name}/${room.room}#agent`;
    const asked = await runCli(["send", "Translate the report.", "-a", address], { workingDirectory });
    expect(asked.stdout + asked.stderr).toContain("Into which language?");
    await person.say("@agent Please translate this.");
    await person.next("agent", /Into which language\?/);
  },
);

it("an account of a network that allows one connection is left to the server that runs", async () => {
  const { url } = await startServer({ agents: { translator } });
  const workingDirectory = createFolder();
  const { port } = new URL(url);
  const channels = '[{ telegram: { token: "1:secret" }, agent: echo }]';
  const config = `server: { port: ${port} }\nagents: { echo: { use: echo } }\nchannels: ${channels}\n`;
  writeFileSync(join(workingDirectory, "dragoman.yaml"), config);
  const refused = await runCli(["send", "Hello", "-a", "a2a-lite:telegram/-1#2"], { workingDirectory });
  expect(refused).toMatchObject({ code: 3, stdout: "" });
  expect(refused.stderr).toContain(`is in use by the server at 127.0.0.1:${port}`);
});

it("says so if the account is the agent's own, where names are not free", async () => {
  const { run, server, configure } = await open();
  configure({ matrix: { homeserver: server.url, token: server.register("agent"), rooms: [ROOM] } });
  const refused = await run("send", "Hello");
  expect(refused.code).toBe(3);
  expect(refused.stderr).toContain("the account in use is that of @agent:sim itself");
});

it.each(RAW_NETWORKS.filter(({ isAvailable, name }) => isAvailable && name === "xmpp"))(
  "says so on $name also if the agent is called by its nick",
  async (network) => {
    const room = await network.start();
    const channel = { ...room.settings("agent"), agent: "translator", allowPeers: "*" } as const;
    await startInRoom({ agents: { translator }, channels: [channel] });
    const workingDirectory = createFolder();
    const config = `agents: { translator: { use: echo } }\nchannels: [${JSON.stringify(channel)}]\n`;
    writeFileSync(join(workingDirectory, "dragoman.yaml"), config);
    const address = `a2a-lite:xmpp/${room.room}#agent`;
    const refused = await runCli(["send", "Hello", "-a", address], { workingDirectory });
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain("the account in use is that of agent itself");
  },
);
