/** Encrypted connections, and logging in over them: `dragoman channels test` against real servers. */

import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createServer, type TLSSocket } from "node:tls";
import { afterAll, describe, expect, it } from "vitest";
import { runCli, stopAll } from "../../src/core/cli/testing/run-cli.ts";
import { createAuthority } from "../support/certificates.ts";
import { closeLater, createFolder } from "../support/lifecycle.ts";
import { hasServer, startMosquitto, startNgircd, startProsody } from "./servers.ts";

const authority = createAuthority();
const tls = authority.issue({ commonName: "localhost", dns: ["localhost"], addresses: ["127.0.0.1"] });
const PASSWORD = "password-of-agent";

afterAll(stopAll);

/** With an account of the network: whether the certificate is trusted depends on the process. */
async function test(network: string, settings: object, { trusts = true } = {}) {
  const workingDirectory = createFolder();
  const ca = join(workingDirectory, "ca.pem");
  writeFileSync(ca, authority.cert);
  const entry = JSON.stringify({ [network]: settings, agent: "echo" });
  writeFileSync(join(workingDirectory, "dragoman.yaml"), `agents: { echo: { use: echo } }\nchannels: [${entry}]\n`);
  const environment: Record<string, string> = trusts ? { NODE_EXTRA_CA_CERTS: ca } : {};
  return runCli(["channels", "test", network], { workingDirectory, environment });
}

const WORKS = { code: 0, stderr: "", stdout: expect.stringMatching(/^ +ok +post to .*: accepted/m) };
const IS_NOT_TRUSTED = { code: 3, stdout: expect.stringMatching(/^ +failed +connect: .*certificate/m) };

/** It works where the certificate is trusted, and only there. */
async function expectTrust(network: string, settings: object): Promise<void> {
  const [trusting, other] = await Promise.all([test(network, settings), test(network, settings, { trusts: false })]);
  expect(trusting).toMatchObject(WORKS);
  expect(other).toMatchObject(IS_NOT_TRUSTED);
}

async function listen(onConnection: (socket: TLSSocket) => void): Promise<number> {
  const server = createServer(tls, (socket) => {
    socket.on("error", () => {});
    onConnection(socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  closeLater(() => server.close());
  return (server.address() as AddressInfo).port;
}

describe("IRC", () => {
  it.runIf(hasServer("ngircd"))("is encrypted, with the password of the server", async () => {
    const server = await startNgircd({ password: PASSWORD, tls });
    closeLater(() => server.close());
    const settings = { host: "localhost", port: server.port, tls: true, nick: "agent", channels: ["#work"] };
    await expectTrust("irc", { ...settings, password: PASSWORD });
    expect(await test("irc", { ...settings, password: "wrong" })).toMatchObject({ code: 4 });
  });

  /** No more than it takes to log in by SASL, which ngircd does not have. */
  it("logs in to an account by SASL before it joins", async () => {
    const lines: string[] = [];
    const port = await listen((socket) => {
      const say = (line: string) => socket.write(`:irc.test ${line}\r\n`);
      createInterface({ input: socket }).on("line", (line) => {
        lines.push(line);
        if (line.startsWith("CAP LS")) say("CAP * LS :sasl=PLAIN");
        else if (line.startsWith("CAP REQ")) say(`CAP * ACK :${line.slice("CAP REQ :".length)}`);
        else if (line === "AUTHENTICATE PLAIN") socket.write("AUTHENTICATE +\r\n");
        else if (line.startsWith("AUTHENTICATE ")) {
          const [, name, password] = Buffer.from(line.slice("AUTHENTICATE ".length), "base64").toString().split("\0");
          if (name === "account" && password === PASSWORD) say("903 agent :SASL authentication successful");
          else say("904 agent :SASL authentication failed");
        } else if (line === "CAP END") say("001 agent :Welcome");
        else if (line.startsWith("JOIN ")) socket.write(":agent!agent@host JOIN #work\r\n");
        else if (line.startsWith("PING ")) say(`PONG irc.test ${line.slice("PING ".length)}`);
        else if (line.startsWith("QUIT")) socket.end();
      });
    });
    const settings = { host: "localhost", port, tls: true, nick: "agent", channels: ["#work"] };
    const account = { name: "account", password: PASSWORD };
    expect((await test("irc", { ...settings, account })).stdout).toMatch(/^ +ok +connect/m);
    expect(lines.findIndex((line) => line.startsWith("JOIN "))).toBeGreaterThan(lines.indexOf("CAP END"));
    const wrong = await test("irc", { ...settings, account: { ...account, password: "wrong-password" } });
    expect(wrong).toMatchObject({ code: 4, stdout: expect.stringContaining("did not accept the account") });
    expect(wrong.stdout + wrong.stderr).not.toContain("wrong-password");
  });
});

describe.runIf(hasServer("prosody"))("XMPP", () => {
  it("is encrypted after STARTTLS, without which the server refuses the account", async () => {
    const server = await startProsody({ agent: PASSWORD }, { tls });
    closeLater(() => server.close());
    const service = `xmpp://127.0.0.1:${server.port}`;
    const settings = { service, jid: "agent@localhost", password: PASSWORD, rooms: [`work@${server.muc}`] };
    await expectTrust("xmpp", settings);
  });
});

describe.runIf(hasServer("mosquitto"))("MQTT", () => {
  const account = { name: "agent", username: "agent", password: PASSWORD, rooms: ["work"] };

  it("is encrypted, with a user name and a password", async () => {
    const server = await startMosquitto({ users: { agent: PASSWORD }, tls });
    closeLater(() => server.close());
    const settings = { ...account, url: `mqtts://localhost:${server.port}` };
    await expectTrust("mqtt", settings);
  });

  it("is MQTT 3.1.1 where the broker has nothing else", async () => {
    const server = await startMosquitto({ users: { agent: PASSWORD } });
    closeLater(() => server.close());
    const levels: number[] = [];
    const port = await listen((socket) => {
      socket.once("data", (packet: Buffer) => {
        // Of CONNECT: fixed header, the name of the protocol with its length, and its level.
        const level = packet[packet.indexOf("MQTT") + "MQTT".length] ?? 0;
        levels.push(level);
        if (level === 5) {
          socket.end(Buffer.from([0x20, 0x02, 0x00, 0x01]));
          return;
        }
        const broker = connect(server.port, "127.0.0.1");
        broker.on("error", () => socket.destroy());
        broker.write(packet);
        socket.pipe(broker).pipe(socket);
      });
    });
    expect(await test("mqtt", { ...account, url: `mqtts://localhost:${port}` })).toMatchObject(WORKS);
    expect(levels).toEqual([5, 4]);
  });
});
