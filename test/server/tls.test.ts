import { renameSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { beforeEach, describe, expect, test } from "vitest";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import { SILENT_LOG } from "../../src/core/model/ports.ts";
import { openTlsFiles } from "../../src/core/server/access/tls.ts";
import { createHttp2Server } from "../../src/core/server/grpc/endpoint.ts";
import { createDeferred } from "../../src/core/wire/link.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { createAuthority, type Made } from "../support/certificates.ts";
import { createFolder, listen, startServer } from "../support/lifecycle.ts";
import { A2A_V1, readAll, rpcBody } from "../support/raw-http.ts";
import { exchangeBytes } from "../support/raw-socket.ts";

const authority = createAuthority();
const stranger = createAuthority("Another authority");
const SERVER = { commonName: "server", dns: ["localhost"], addresses: ["127.0.0.1"] };

let folder: string;
let server: DragomanServer;

beforeEach(() => {
  folder = createFolder();
});

function write(made: Made): void {
  for (const [name, text] of [
    ["key.pem", made.key],
    ["cert.pem", made.cert],
  ] as const) {
    writeFileSync(join(folder, `${name}.new`), text);
    renameSync(join(folder, `${name}.new`), join(folder, name));
  }
}

async function start(options: Partial<ServeOptions> = {}): Promise<DragomanServer> {
  write(authority.issue(SERVER));
  writeFileSync(join(folder, "ca.pem"), authority.cert);
  server = await startServer({
    agents: { echo: createEchoAgent() },
    baseDirectory: folder,
    tls: { cert: "cert.pem", key: "key.pem" },
    ...options,
  });
  return server;
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly challenge: string | undefined;
}

function ask(url: string, by?: Made, body?: string, headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { method: body === undefined ? "GET" : "POST", headers, ca: authority.cert, ...by, agent: false };
    const asking = request(url, options, (response) => {
      const { headers: answered, statusCode: status = 0 } = response;
      readAll(response).then(
        (bytes) => resolve({ status, text: bytes.toString(), challenge: answered["www-authenticate"] }),
        reject,
      );
    });
    asking.on("error", reject).end(body);
  });
}

/** The status of a gRPC call; 5 is "no such task", which only those get who were let in. */
function grpcStatus(by?: Made): Promise<number> {
  const [key, cert] = by === undefined ? [null, null] : [Buffer.from(by.key), Buffer.from(by.cert)];
  const client = new Client(server.grpc ?? "", credentials.createSsl(Buffer.from(authority.cert), key, cert));
  const metadata = new Metadata();
  metadata.set("a2a-version", "1.0");
  const none = Buffer.from([0x12, 0x04, 0x6e, 0x6f, 0x6e, 0x65]);
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      "/lf.a2a.v1.A2AService/GetTask",
      (bytes: Buffer) => bytes,
      (bytes: Buffer) => bytes,
      none,
      metadata,
      (error: ServiceError | null) => {
        client.close();
        resolve(error?.code ?? 0);
      },
    );
  });
}

function subjectShown(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket: TLSSocket = connectTls({ host: "127.0.0.1", port, ca: authority.cert, ALPNProtocols: ["h2"] }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

const LIST = rpcBody("ListTasks");

/** A log, and a promise of its first entry that contains the text. */
function waitForLog(level: "info" | "error", text: string) {
  const { promise, resolve } = createDeferred();
  const note = (_fields: object, message: string) => void (message.includes(text) && resolve());
  return { log: { ...SILENT_LOG, [level]: note }, logged: promise };
}

describe("over TLS", () => {
  test("HTTP and gRPC are served, and cards say so", async () => {
    const { url } = await start();
    expect(url).toMatch(/^https:/);
    const card = JSON.parse((await ask(`${url}/.well-known/agent-card.json`)).text);
    const bindings = card.supportedInterfaces.map((one: { url: string }) => one.url.replace(/\d{4,}.*/, ""));
    expect(new Set(bindings)).toEqual(new Set(["https://127.0.0.1:", "127.0.0.1:"]));
    expect((await ask(url, undefined, LIST, A2A_V1)).status).toBe(200);
    expect(await grpcStatus()).toBe(5);
  });

  test("new certificates are taken up while calls go on", async () => {
    const { log, logged } = waitForLog("info", "in use");
    const { port, grpc = "" } = await start({ log });
    const grpcPort = Number(grpc.split(":")[1]);
    const held: TLSSocket = await new Promise((resolve) => {
      const socket: TLSSocket = connectTls({ host: "127.0.0.1", port, ca: authority.cert }, () => resolve(socket));
    });
    write(authority.issue({ ...SERVER, commonName: "renewed" }));
    await logged;
    expect(await subjectShown(grpcPort)).toBe("renewed");
    expect((await ask(`https://127.0.0.1:${port}/healthz`)).status).toBe(200);
    const answered = new Promise<string>((resolve) => held.once("data", (bytes: Buffer) => resolve(bytes.toString())));
    held.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    expect(await answered).toContain("200 OK");
    held.destroy();
  });

  test("new certificates are taken up though files beside them change all the time", async () => {
    const { log, logged } = waitForLog("info", "in use");
    const { grpc = "" } = await start({ log });
    const writing = setInterval(() => writeFileSync(join(folder, "audit.jsonl"), "{}\n"), 10);
    write(authority.issue({ ...SERVER, commonName: "renewed" }));
    await logged.finally(() => clearInterval(writing));
    expect(await subjectShown(Number(grpc.split(":")[1]))).toBe("renewed");
  });

  test("handshakes that do not come to an end are given up on the port of gRPC too", async () => {
    write(authority.issue(SERVER));
    const files = await openTlsFiles({ cert: "cert.pem", key: "key.pem" }, folder, SILENT_LOG);
    const options = { ...files.serverOptions, handshakeTimeout: 50 };
    const listener = createHttp2Server(10, { serverOptions: options, onChange: () => {} });
    const port = await listen(listener);
    const beginnings = [Buffer.alloc(0), Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00])];
    await Promise.all(beginnings.map((bytes) => exchangeBytes(port, bytes)));
    files.close();
  });

  test("certificates that cannot be used leave the old ones in use", async () => {
    const { log, logged } = waitForLog("error", "cannot be used");
    const { port } = await start({ log });
    writeFileSync(join(folder, "cert.pem"), "no certificate");
    await logged;
    expect((await ask(`https://127.0.0.1:${port}/healthz`)).status).toBe(200);
  });

  test("files that are not there are named", async () => {
    const tls = { cert: "none.pem", key: "key.pem" };
    await expect(start({ tls })).rejects.toThrow(/tls\.cert: .*none\.pem cannot be read/);
  });
});

describe("client certificates", () => {
  const auth = { mtls: { ca: "ca.pem" } };
  const alice = authority.issue({ commonName: "Alice", uris: ["spiffe://example.com/alice"] });

  test("are the owner, over HTTP and gRPC", async () => {
    const { url } = await start({ auth });
    expect((await ask(url, alice, LIST, A2A_V1)).status).toBe(200);
    expect(await grpcStatus(alice)).toBe(5);
    const card = JSON.parse((await ask(`${url}/.well-known/agent-card.json`)).text);
    expect(card.securitySchemes).toMatchObject({ mtls: { mtlsSecurityScheme: {} } });
  });

  test.each([
    ["none", undefined],
    ["of another authority", stranger.issue({ commonName: "Alice", uris: ["spiffe://example.com/alice"] })],
    ["expired", authority.issue({ commonName: "Alice", days: -1 })],
  ])("are refused: %s", async (_what, by) => {
    const { url } = await start({ auth });
    const answer = await ask(url, by, LIST, A2A_V1);
    expect([answer.status, answer.challenge]).toEqual([401, 'ClientCertificate realm="dragoman"']);
    expect(await grpcStatus(by)).toBe(16);
  });

  test("are shown to a check of one's own", async () => {
    const seen: unknown[] = [];
    const { url } = await start({
      tls: { cert: "cert.pem", key: "key.pem", ca: "ca.pem", requestClientCertificate: true },
      authenticate: ({ certificate }) => {
        seen.push([certificate?.verified, certificate?.uris]);
        return undefined;
      },
    });
    await ask(url, alice, LIST, A2A_V1);
    expect(seen).toEqual([[true, ["spiffe://example.com/alice"]]]);
  });

  test("need TLS, and one set of authorities", async () => {
    await expect(startServer({ agents: { echo: createEchoAgent() }, auth })).rejects.toThrow(/needs tls/);
    const tls = { cert: "cert.pem", key: "key.pem", ca: "ca.pem" };
    await expect(start({ auth, tls })).rejects.toThrow(/only its own/);
  });
});
