import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAuthority } from "../../../../test/support/certificates.ts";
import { createEchoAgent } from "../../agents/builtin.ts";
import { parseConfig } from "../../server/config/load.ts";
import { serve } from "../../server/serve.ts";
import { checkFiles, checkPorts } from "./checks.ts";

const DAY_MS = 86_400_000;
const authority = createAuthority();
const { privateKey } = generateKeyPairSync("ed25519");

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "doctor-files-"));
  const issued = authority.issue({ commonName: "a", dns: ["agents.example"], addresses: ["192.0.2.7"], days: 90 });
  const files: Record<string, string> = {
    "cert.pem": issued.cert,
    "key.pem": issued.key,
    "other-key.pem": authority.issue({ commonName: "b" }).key,
    "ca.pem": authority.cert,
    "sign.pem": privateKey.export({ format: "pem", type: "pkcs8" }).toString(),
    "nothing.pem": "planted-nothing",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
});
afterAll(() => rmSync(folder, { recursive: true }));

const configOf = (text: string) => {
  const open = text.includes("auth:") ? "" : "auth: { anonymous: true }\n";
  const config = `agents: { echo: { use: echo } }\n${open}${text}`;
  return parseConfig(config, { source: "dragoman.yaml", folder, environment: {} });
};

const looking = (text: string, days = 0) => checkFiles(configOf(text), Date.now() + days * DAY_MS);

const TLS = "server: { publicUrl: https://agents.example, tls: { cert: cert.pem, key: key.pem } }";

describe("doctor on files", () => {
  it("looks at nothing that is not named", async () => {
    expect(await looking("")).toEqual([]);
  });

  it("finds all in order that is", async () => {
    const more = "auth: { mtls: { ca: ca.pem } }\nsigning: { keyFile: sign.pem, kid: k1 }\naudit: { file: new.jsonl }";
    const push = "push: { jwt: { keyFile: sign.pem, kid: k2 } }";
    expect(await looking(`${TLS}\n${more}\n${push}`)).toEqual([
      { name: "server.tls", status: "ok", detail: expect.stringMatching(/^valid until \d{4}-\d\d-\d\d$/) },
      { name: "auth.mtls.ca", status: "ok", detail: "CN=Test authority" },
      { name: "signing", status: "ok", detail: "k1, EdDSA" },
      { name: "push.jwt", status: "ok", detail: "k2, EdDSA" },
      { name: "audit", status: "ok", detail: `${join(folder, "new.jsonl")} can be written` },
    ]);
  });

  it.each([
    ["a certificate that ends soon", TLS, 80, "warning", "should be renewed"],
    ["one that has ended", TLS, 91, "failed", "expired"],
    ["one that has not begun", TLS, -3, "failed", "not valid before"],
    ["one of another host", TLS.replace("https://agents.", "https://other."), 0, "warning", "not for other.example"],
    ["one of an address", TLS.replace("agents.example", "192.0.2.7"), 0, "ok", "valid until"],
    ["a key of another certificate", TLS.replace("key.pem", "other-key.pem"), 0, "failed", "mismatch"],
    ["a certificate that is not there", TLS.replace("cert.pem", "gone.pem"), 0, "failed", "ENOENT"],
    ["authorities that are none", `${TLS}\nauth: { mtls: { ca: nothing.pem } }`, 0, "failed", ""],
    ["a key that is none", "signing: { keyFile: nothing.pem, kid: k }", 0, "failed", "holds no private key"],
    ["a record that has no folder", "audit: { file: no/audit.jsonl }", 0, "warning", "nothing will be recorded"],
    ["one that must have", "audit: { file: no/a.jsonl, required: true }", 0, "failed", "nothing will be served"],
  ])("judges %s", async (_, text, days, status, words) => {
    const last = (await looking(text, days)).at(-1);
    expect(last).toMatchObject({ status, detail: expect.stringContaining(words) });
    expect(last?.detail).not.toContain("planted");
  });

  it("knows a server over TLS as one of ours", async () => {
    const tls = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
    const server = await serve({ port: 0, log: false, agents: { echo: createEchoAgent() }, tls });
    const grpcPort = Number(server.grpc?.split(":").at(-1));
    const taken = configOf(`${TLS.replace("{", `{ port: ${server.port}, grpcPort: ${grpcPort},`)}`);
    expect(await checkPorts(taken.server)).toMatchObject([
      { name: "port", status: "warning", detail: expect.stringContaining("a dragoman already listens") },
      { name: "gRPC port", status: "warning" },
    ]);
    await server.close();
    const free = await checkPorts(taken.server);
    expect(free.map(({ status }) => status)).toEqual(["ok", "ok"]);
    const { grpcPort: _, ...withoutGrpcPort } = taken.server;
    expect(await checkPorts({ ...withoutGrpcPort, port: 0 })).toHaveLength(1);
    expect(await checkPorts({ ...taken.server, grpcPort: false })).toHaveLength(1);
  });
});
