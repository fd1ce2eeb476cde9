/** Limits, audit log and cards by caller where keys say who calls. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { beforeEach, describe, expect, it } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { createAuthority } from "../support/certificates.ts";
import { closeLater, createFolder, startServer } from "../support/lifecycle.ts";
import { callRpc, type RawReply } from "../support/raw-http.ts";
import { openSocket } from "../support/raw-socket.ts";
import { userMessage } from "../support/wire-client.ts";
import { INTERFACES, speaking } from "./interfaces.ts";

const ALICE = "alice-key-5f0c2b77d1";
const EDITOR = "editor-key-9a41e6c803";
const BOB = "bob-key-c1d2e3f4a5b6";

const skill = (id: string, scopes?: readonly string[]) => ({
  id,
  name: id,
  description: `Does ${id}.`,
  ...(scopes && { scopes }),
});

const agent = defineAgent({
  name: "Discreet",
  description: "Tells each caller what there is for it.",
  skills: [skill("read")],
  run: async () => "done",
  extended: ({ owner }) => (owner === "bob" ? undefined : { skills: [skill("more"), skill("edit", ["edit"])] }),
});

let folder: string;
beforeEach(() => {
  folder = createFolder();
});

function start(options: Partial<ServeOptions> = {}): Promise<DragomanServer> {
  return startServer({
    agents: { discreet: agent },
    baseDirectory: folder,
    auth: {
      apiKeys: [
        { key: ALICE, owner: "alice" },
        { key: EDITOR, owner: "alice", scopes: ["edit"] },
        { key: BOB, owner: "bob" },
      ],
    },
    ...options,
  });
}

function send(url: string, key: string | undefined, metadata?: object): Promise<RawReply> {
  return callRpc(url, "SendMessage", { message: userMessage("hi", { metadata }) }, key ? { "x-api-key": key } : {});
}

describe("skills that are listed for each caller separately", () => {
  it("are for callers that see them and have their scopes", async () => {
    const { url } = await start();
    const statusOf = async (key: string, id: string) => (await send(url, key, { skill: id })).status;
    expect([await statusOf(ALICE, "read"), await statusOf(ALICE, "more"), await statusOf(ALICE, "edit")]).toEqual([
      200, 200, 403,
    ]);
    expect([await statusOf(EDITOR, "edit"), await statusOf(EDITOR, "unheard-of")]).toEqual([200, 403]);
    expect([await statusOf(BOB, "read"), await statusOf(BOB, "more"), await statusOf(BOB, "edit")]).toEqual([
      200, 403, 403,
    ]);
  });

  it("are not for unauthenticated callers", async () => {
    const { url } = await start({ auth: { apiKeys: [{ key: ALICE, owner: "alice" }], anonymous: true } });
    expect([(await send(url, undefined)).status, (await send(url, undefined, { skill: "read" })).status]).toEqual([
      200, 200,
    ]);
    const refused = await send(url, undefined, { skill: "more" });
    expect([refused.status, refused.headers["www-authenticate"]]).toEqual([401, expect.stringContaining("Bearer")]);
  });

  it("are on the card with the requirements that their scopes make", async () => {
    const { url } = await start();
    const agent = await speaking(url, { dialect: "a2a-v1", binding: "JSONRPC" }, { headers: { "x-api-key": ALICE } });
    const [, more, edit] = (await agent.extendedCard()).skills;
    expect(more).not.toHaveProperty("securityRequirements");
    expect(edit).not.toHaveProperty("scopes");
    expect(edit?.securityRequirements).toContainEqual({ schemes: { apiKey: { list: ["edit"] } } });
  });
});

describe.each(INTERFACES)("limits of callers known by keys: $dialect over $binding", (spoken) => {
  const options = (key: string) => ({ headers: { "x-api-key": key } });

  it("count an owner's requests under all of its keys, and no one's with wrong ones", async () => {
    const { url } = await start({ limits: { ratePerOwner: 0.01, burstPerOwner: 2 } });
    const guesser = await speaking(url, spoken, options("wrong"));
    for (const _ of [1, 2, 3]) await expect(guesser.send("hi")).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    const [alice, editor, bob] = await Promise.all(
      [ALICE, EDITOR, BOB].map((key) => speaking(url, spoken, options(key))),
    );
    await alice?.send("hi");
    await editor?.send("hi");
    await expect(alice?.send("hi")).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    await bob?.send("hi");
  });

  it("failed logins are recorded, and so is that there were too many", async () => {
    const server = await start({ limits: { failedLogins: 2 }, audit: { file: "audit.jsonl" } });
    const guesser = await speaking(server.url, spoken, options("wrong-key-never-written"));
    for (const _ of [1, 2]) await expect(guesser.send("hi")).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    await expect(guesser.send("hi")).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    await server.close();
    const text = readFileSync(join(folder, "audit.jsonl"), "utf8");
    const lines = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const common = {
      operation: "authenticate",
      authenticated: false,
      address: "127.0.0.1",
      ...(spoken.binding !== "GRPC" && { agent: "discreet" }),
    };
    expect(lines).toEqual(
      ["UNAUTHENTICATED", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED"].map((result) =>
        expect.objectContaining({ ...common, result }),
      ),
    );
    expect(text).not.toContain("never-written");
  });
});

it("an owner's requests are counted also where finding out who it is takes time", async () => {
  const { url } = await start({
    auth: {},
    authenticate: async () => ({ owner: "alice", authenticated: true }),
    limits: { ratePerOwner: 0.01, burstPerOwner: 1 },
  });
  expect([(await send(url, undefined)).status, (await send(url, undefined)).status]).toEqual([200, 429]);
});

it("scopes that are missing are recorded", async () => {
  const server = await start({ audit: { file: "audit.jsonl" } });
  await send(server.url, ALICE, { skill: "edit" });
  await server.close();
  const line = JSON.parse(readFileSync(join(folder, "audit.jsonl"), "utf8"));
  expect(line).toMatchObject({ owner: "alice", address: "127.0.0.1", operation: "send", result: "PERMISSION_DENIED" });
});

it("keys and passwords of the configuration are not written to a log, wherever they occur", async () => {
  const written: string[] = [];
  const write = (fields: object, message: string) => written.push(JSON.stringify(fields) + message);
  const failing = defineAgent({
    name: "Failing",
    description: "Says what it should not.",
    run: async () => {
      throw new Error(`cannot reach ${ALICE} or hunter-of-4711`);
    },
  });
  const { url } = await start({
    agents: { failing },
    auth: {
      apiKeys: [{ key: ALICE, owner: "alice" }],
      basic: [{ user: "carol", password: "hunter-of-4711", owner: "carol" }],
    },
    log: { debug: write, info: write, warn: write, error: write },
  });
  await send(url, ALICE);
  expect(written.join("\n")).toContain("cannot reach [redacted] or [redacted]");
  expect(written.join("\n")).not.toMatch(/5f0c2b77d1|hunter-of-4711/);
});

describe("connections over TLS", () => {
  /** Whether a connection came about. */
  function open(port: number): Promise<TLSSocket | undefined> {
    return new Promise((resolve) => {
      const socket = connectTls({
        host: "127.0.0.1",
        port,
        ALPNProtocols: ["h2", "http/1.1"],
        rejectUnauthorized: false,
      });
      closeLater(() => socket.destroy());
      socket.once("secureConnect", () => resolve(socket));
      socket.on("error", () => resolve(undefined));
      socket.once("close", () => resolve(undefined));
    });
  }

  /** Returns the carrier's port. */
  async function startSecurely(carrier: string, limits: ServeOptions["limits"] = {}): Promise<number> {
    const made = createAuthority().issue({ commonName: "server", dns: ["localhost"], addresses: ["127.0.0.1"] });
    writeFileSync(join(folder, "cert.pem"), made.cert);
    writeFileSync(join(folder, "key.pem"), made.key);
    const { port, grpc } = await start({ tls: { cert: "cert.pem", key: "key.pem" }, limits });
    return carrier === "HTTP" ? port : Number(grpc?.split(":").at(-1));
  }

  it.each(["HTTP", "gRPC"])("are few at a time while no caller on them is known: %s", async (carrier) => {
    const port = await startSecurely(carrier);
    let [opened, closed] = [0, 0];
    const openOneMore = () => {
      // Fewer than an address may have.
      if (++opened < 240) openSocket(port).on("close", () => closed++);
      return closed;
    };
    while (opened < 200) openOneMore();
    // Sooner than a handshake takes too long.
    await expect.poll(openOneMore, { timeout: 5_000 }).toBeGreaterThan(0);
    expect((await open(port))?.authorized).toBe(false);
  });

  it.each(["HTTP", "gRPC"])("are bounded by address: %s", async (carrier) => {
    const at = await startSecurely(carrier, { connectionsPerAddress: 2 });
    const [first, second] = [await open(at), await open(at)];
    expect([first?.authorized, second?.authorized]).toEqual([false, false]);
    expect(await open(at)).toBeUndefined();
    first?.destroy();
    await expect.poll(() => open(at)).toBeDefined();
  });
});
