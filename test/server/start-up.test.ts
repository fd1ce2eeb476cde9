import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import { SILENT_LOG } from "../../src/core/model/ports.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import { openStore } from "../../src/core/store/open.ts";
import { createDialInAgent } from "../../src/features/xiaoyi/server/dial-in-agent.ts";
import { type ServeOptions, serve } from "../../src/index.ts";
import { createFolder, freePort, listen } from "../support/lifecycle.ts";

/** A store that counts how often it is closed. */
async function countedStore() {
  const store = await openStore("memory:", { baseDirectory: ".", clock: systemClock, log: SILENT_LOG });
  const closed = { times: 0 };
  const close = async () => {
    closed.times++;
    await store.close();
  };
  const counted = new Proxy(store, {
    get(target, name) {
      if (name === "close") return close;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { store: counted, closed };
}

async function refusesConnections(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return false;
  } catch {
    return true;
  } finally {
    socket.destroy();
  }
}

const echo = { echo: createEchoAgent() };

describe("a server that fails to start leaves nothing open", () => {
  test("when its store cannot be opened, with the audit log already there", async () => {
    const baseDirectory = createFolder();
    await writeFile(join(baseDirectory, "tasks.db"), "not a database, and long enough to be read as one".repeat(100));
    const options: ServeOptions = {
      agents: echo,
      port: 0,
      baseDirectory,
      audit: { file: "audit.log", required: true },
    };
    await expect(serve({ ...options, store: "sqlite:tasks.db" })).rejects.toThrow();
    expect(await readFile(join(baseDirectory, "audit.log"), "utf8")).toBe("");
  });

  test("when a link is configured for an agent that is not there", async () => {
    const { store, closed } = await countedStore();
    const link = { agent: "nobody", agentId: "a", ak: "k", sk: "s", url: "ws://127.0.0.1:9" };
    await expect(serve({ agents: echo, port: 0, store, xiaoyi: { links: [link] } })).rejects.toThrow("nobody");
    expect(closed.times).toBe(1);
  });

  test("when its port is in use", async () => {
    const { store, closed } = await countedStore();
    const port = await listen(createServer());
    await expect(serve({ agents: echo, port, store })).rejects.toMatchObject({ code: "EADDRINUSE" });
    expect(closed.times).toBe(1);
  });

  test("when the port of gRPC is in use: HTTP, links and store are closed again", async () => {
    const { store, closed } = await countedStore();
    const [port, grpcPort] = [await freePort(), await listen(createServer())];
    const dialIn = createDialInAgent({ name: "away", description: "away", agentId: "a", uid: "u", apiKey: "k" });
    const agents = { ...echo, away: dialIn };
    await expect(serve({ agents, port, grpcPort, store })).rejects.toMatchObject({ code: "EADDRINUSE" });
    expect(closed.times).toBe(1);
    expect(await refusesConnections(port)).toBe(true);
  });

  test("when an agent has no profile to show, after all ports are open", async () => {
    const { store, closed } = await countedStore();
    const [port, grpcPort] = [await freePort(), await freePort()];
    const broken = { ...createEchoAgent() };
    let asked = 0;
    Object.defineProperty(broken, "profile", {
      get() {
        if (asked++ > 0) throw new Error("no profile");
        return createEchoAgent().profile;
      },
    });
    await expect(serve({ agents: { broken }, port, grpcPort, store })).rejects.toThrow("no profile");
    expect(closed.times).toBe(1);
    expect([await refusesConnections(port), await refusesConnections(grpcPort)]).toEqual([true, true]);
  });
});

test("a server closes its store once", async () => {
  const { store, closed } = await countedStore();
  const server = await serve({ agents: echo, port: 0, store });
  await Promise.all([server.close(), server.close()]);
  await server.closed;
  expect(closed.times).toBe(1);
});
