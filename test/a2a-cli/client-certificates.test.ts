/** Mutual TLS on the command line: against a server that requires client certificates, and one that asks anyone for them. */
import { writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runInProcess } from "../../src/core/cli/testing/run-in-process.ts";
import type { DragomanServer } from "../../src/index.ts";
import { BUILTIN_AGENTS } from "../support/builtin-agents.ts";
import { createAuthority, type Made } from "../support/certificates.ts";
import { closeLater, createFolder, listen, startServer } from "../support/lifecycle.ts";

const authority = createAuthority();
const own = authority.issue({ commonName: "server", dns: ["localhost"], addresses: ["127.0.0.1"] });
const alice = authority.issue({ commonName: "Alice", uris: ["spiffe://example.com/alice"] });
const stranger = createAuthority("Another authority").issue({ commonName: "Alice" });

let folder: string;
let server: DragomanServer;

function save(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

/** The flags for a certificate, in files. */
function identify({ cert, key }: Made): readonly string[] {
  return ["--client-cert", save("client.pem", cert), "--client-key", save("client-key.pem", key)];
}

beforeEach(async () => {
  vi.stubEnv("HOME", "/nonexistent");
  folder = createFolder();
  const tls = { cert: save("cert.pem", own.cert), key: save("key.pem", own.key) };
  const ca = save("ca.pem", authority.cert);
  server = await startServer({
    agents: { echo: BUILTIN_AGENTS.echo() },
    baseDirectory: folder,
    tls,
    auth: { mtls: { ca } },
  });
});
afterEach(() => vi.unstubAllEnvs());

const send = (...words: readonly string[]) =>
  runInProcess("send", "-a", server.url, "--text", "hello", "--ca-cert", join(folder, "ca.pem"), ...words);

/** A card over TLS, whose interfaces are elsewhere. */
async function serveCard(supportedInterfaces: readonly object[]): Promise<string> {
  const card = {
    name: "Elsewhere",
    description: "Its interface is on another port.",
    version: "1",
    supportedInterfaces,
    capabilities: {},
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
  };
  const home = createServer({ ...own }, (_, response) => response.end(JSON.stringify(card)));
  return `https://127.0.0.1:${await listen(home)}`;
}

describe("[A2ACLI_AUTH_009] a client certificate", () => {
  it.each(["JSONRPC", "HTTP+JSON", "GRPC"])("identifies the caller over %s", async (transport) => {
    const { code, stderr, stdout } = await send("--transport", transport, ...identify(alice));
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("State: TASK_STATE_COMPLETED\n");
    expect(stdout).toContain(`--client-cert ${join(folder, "client.pem")} --client-key`);
  });

  it.each(["JSONRPC", "HTTP+JSON", "GRPC"])(
    "is asked for over %s, and refused if it is not trusted",
    async (transport) => {
      const missing = await send("--transport", transport);
      expect([missing.code, missing.stderr]).toEqual([4, expect.stringContaining("A2ACLI_ERR_CREDENTIALS_MISSING")]);
      expect(missing.stderr).toContain("a client certificate (--client-cert and --client-key)");
      const wrong = await send("--transport", transport, ...identify(stranger));
      expect([wrong.code, wrong.stderr]).toEqual([4, expect.stringContaining("A2ACLI_ERR_AUTH_FAILED")]);
    },
  );

  it("comes from the environment too, in one file with its key if that is so", async () => {
    vi.stubEnv("A2ACLI_CLIENT_CERT", save("both.pem", alice.cert + alice.key));
    vi.stubEnv("A2ACLI_CA_CERT", join(folder, "ca.pem"));
    expect((await runInProcess("task", "list", "-a", server.url)).code).toBe(0);
    vi.stubEnv("A2ACLI_CLIENT_CERT", save("client.pem", alice.cert));
    vi.stubEnv("A2ACLI_CLIENT_KEY", save("client-key.pem", alice.key));
    expect((await runInProcess("task", "list", "-a", server.url)).code).toBe(0);
  });

  it.each([
    ["a file that is not there", () => ["--client-cert", "nothing.pem"], "nothing.pem of --client-cert"],
    ["no key", () => ["--client-cert", save("client.pem", alice.cert)], "Set --client-key."],
    ["only a key", () => ["--client-key", save("client-key.pem", alice.key)], "--client-key requires --client-cert."],
    ["the key of another", () => identify({ cert: alice.cert, key: own.key }), "cannot be used together"],
    ["no certificate", () => identify({ cert: alice.key, key: alice.key }), "--client-cert contains no certificate"],
    ["no authority", () => ["--ca-cert", save("empty.pem", "")], "--ca-cert contains no certificate"],
  ])("is a usage error with %s", async (_, flags, message) => {
    const { code, stderr } = await send(...flags());
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  it("is not needed to verify the server, whose authority is", async () => {
    const { code, stderr } = await runInProcess("card", "get", "-a", server.url);
    expect([code, stderr]).toEqual([3, expect.stringContaining("A2ACLI_ERR_UNREACHABLE")]);
    expect(stderr).toContain("--ca-cert");
    expect((await runInProcess("card", "get", "-a", server.url, "--ca-cert", join(folder, "ca.pem"))).code).toBe(0);
  });

  it.each(["JSONRPC", "HTTP+JSON", "GRPC"])("is presented by the conformance suite over %s", async (transport) => {
    const run = ["conformance", "-a", server.url, "--transport", transport, "--ca-cert", join(folder, "ca.pem")];
    const checks = ["--a2a-version", "1.0", "--only", "get-unknown-task", "--only", "credentials-are-asked-for"];
    const { code, stdout } = await runInProcess(...run, ...checks, "--verbose", ...identify(alice));
    expect([code, stdout]).toEqual([0, expect.stringContaining("MUST: 1 passed, 0 failed, 1 not applicable\n")]);
    const missing = await runInProcess(...run, ...checks);
    expect([missing.code, missing.stderr]).toEqual([4, expect.stringContaining("A2ACLI_ERR_CREDENTIALS_MISSING")]);
  });

  it("that a strict server misses in the handshake is a missing credential, not an unreachable agent", async () => {
    const strict = new GrpcServer();
    const chain = [{ private_key: Buffer.from(own.key), cert_chain: Buffer.from(own.cert) }];
    const credentials = ServerCredentials.createSsl(Buffer.from(authority.cert), chain, true);
    const port = await new Promise<number>((resolve, reject) =>
      strict.bindAsync("127.0.0.1:0", credentials, (error, bound) => (error === null ? resolve(bound) : reject(error))),
    );
    closeLater(() => strict.forceShutdown());
    const url = await serveCard([{ url: `localhost:${port}`, protocolBinding: "GRPC", protocolVersion: "1.0" }]);
    const get = ["task", "get", "-a", url, "task-1", "-o", "json", "--ca-cert", join(folder, "ca.pem")];
    const { code, stdout } = await runInProcess(...get);
    expect([code, JSON.parse(stdout).error.code]).toEqual([4, "A2ACLI_ERR_CREDENTIALS_MISSING"]);
  });

  it("is shown to no other origin than the card's, unless that is named", async () => {
    const ASKING = { ca: authority.cert, requestCert: true, rejectUnauthorized: false };
    const seen: string[] = [];
    const curious = createServer({ ...own, ...ASKING }, (request, response) => {
      seen.push(String((request.socket as TLSSocket).getPeerCertificate().subject?.CN));
      response.writeHead(404).end();
    });
    const elsewhere = `https://127.0.0.1:${await listen(curious)}`;
    const url = await serveCard([{ url: `${elsewhere}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }]);
    const get = ["task", "get", "-a", url, "task-1", "--ca-cert", join(folder, "ca.pem"), ...identify(alice)];
    expect((await runInProcess(...get)).stderr).toContain("the credentials will not be sent there");
    expect(seen).toEqual(["undefined"]);
    await runInProcess(...get, "--credential-origin", elsewhere);
    expect(seen).toEqual(["undefined", "Alice"]);
    const [, , ...flags] = get.filter((word) => word !== "task-1");
    const run = ["conformance", ...flags, "--only", "get-unknown-task"];
    await runInProcess(...run);
    await runInProcess(...run, "--credential-origin", elsewhere);
    expect([...new Set(seen.slice(2))]).toEqual(["undefined", "Alice"]);
  });
});
