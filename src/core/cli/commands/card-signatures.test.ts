import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestAgent, type TestAgent, task } from "../testing/agent-server.ts";
import { runInProcess } from "../testing/run-in-process.ts";

let folder: string;
let agent: TestAgent;
const at = (name: string) => join(folder, name);
const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const CARD = {
  name: "Signed",
  description: "D",
  version: "1.0.0",
  supportedInterfaces: [{ url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: true },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: "s", name: "S", description: "D", tags: ["t"] }],
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "dragoman-cli-signing-"));
  await writeFile(at("card.json"), JSON.stringify(CARD));
  await writeFile(at("key.pem"), privateKey.export({ format: "pem", type: "pkcs8" }));
  await writeFile(at("public.pem"), publicKey.export({ format: "pem", type: "spki" }));
  const other = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
  await writeFile(at("other.json"), JSON.stringify({ keys: [{ ...other, kid: "other" }] }));
  agent = await startTestAgent();
});
afterAll(async () => {
  await agent.close();
  await rm(folder, { recursive: true });
});

const sign = (...more: string[]) =>
  runInProcess("card", "sign", at("card.json"), "--key", at("key.pem"), "--kid", "k-1", ...more);

describe("card sign and card verify", () => {
  it("sign a card that then verifies by the public key", async () => {
    const signed = await sign("--out", at("signed.json"));
    expect([signed.code, signed.stdout, signed.stderr]).toEqual([0, "", "Signed with ES256 by the key k-1.\n"]);
    const verified = await runInProcess("card", "verify", at("signed.json"), "--card-key", at("public.pem"));
    expect([verified.code, verified.stdout]).toEqual([0, "Signature: verified (key k-1, ES256)\n"]);
    const json = await runInProcess(
      "card",
      "verify",
      "-a",
      at("signed.json"),
      "--card-key",
      at("public.pem"),
      "-o",
      "json",
    );
    expect(JSON.parse(json.stdout)).toEqual({ status: "verified", kid: "k-1", alg: "ES256", uncovered: [] });
  });

  it("print the card where no file is named, and replace an earlier signature by the same key", async () => {
    const first = JSON.parse((await sign()).stdout);
    expect(first).toMatchObject(CARD);
    await writeFile(at("card2.json"), JSON.stringify(first));
    const again = await runInProcess("card", "sign", at("card2.json"), "--key", at("key.pem"), "--kid", "k-2");
    expect(JSON.parse(again.stdout).signatures).toHaveLength(2);
    const replaced = await runInProcess("card", "sign", at("card2.json"), "--key", at("key.pem"), "--kid", "k-1");
    expect(JSON.parse(replaced.stdout).signatures).toHaveLength(1);
  });

  it("[A2ACLI_CARD_GET_004] tell apart what is not signed, not trusted and not true", async () => {
    await sign("--out", at("signed.json"));
    const raw = await readFile(at("signed.json"), "utf8");
    await writeFile(at("forged.json"), raw.replace("Signed", "Forged"));
    const status = async (file: string, key: string) => {
      const { code, stdout } = await runInProcess("card", "verify", at(file), "--card-key", at(key), "-o", "json");
      return [code, JSON.parse(stdout).status];
    };
    expect(await status("card.json", "public.pem")).toEqual([1, "absent"]);
    expect(await status("signed.json", "other.json")).toEqual([1, "unverifiable"]);
    expect(await status("forged.json", "public.pem")).toEqual([1, "invalid"]);
  });

  it("name what of a card is not signed", async () => {
    const schemes = {
      inQuery: { apiKeySecurityScheme: { location: "query", name: "key" } },
      inHeader: { apiKeySecurityScheme: { location: "header", name: "X-Key" } },
    };
    const required = (name: string) => ({ securityRequirements: [{ schemes: { [name]: {} } }] });
    await writeFile(at("asking.json"), JSON.stringify({ ...CARD, securitySchemes: schemes, ...required("inHeader") }));
    await runInProcess(
      "card",
      "sign",
      at("asking.json"),
      "--key",
      at("key.pem"),
      "--kid",
      "k-1",
      "--out",
      at("asks.json"),
    );
    const signed = JSON.parse(await readFile(at("asks.json"), "utf8"));
    await writeFile(
      at("asks.json"),
      JSON.stringify({ ...signed, ...required("inQuery"), url: "https://evil.example" }),
    );
    const verified = await runInProcess("card", "verify", at("asks.json"), "--card-key", at("public.pem"));
    const words = "verified (key k-1, ES256), but not securityRequirements, url";
    expect([verified.code, verified.stdout]).toEqual([0, `Signature: ${words}\n`]);
    const json = await runInProcess("card", "verify", at("asks.json"), "--card-key", at("public.pem"), "-o", "json");
    expect(JSON.parse(json.stdout).uncovered).toEqual(["securityRequirements", "url"]);
    const shown = await runInProcess("card", "get", "-a", at("asks.json"), "--card-key", at("public.pem"));
    expect(shown.stdout).toContain(`Signature: ${words}`);
  });

  it("warn of members that are not signed, and refuse what is no card or no key", async () => {
    await writeFile(at("more.json"), JSON.stringify({ ...CARD, preferredTransport: "JSONRPC" }));
    const more = await runInProcess("card", "sign", at("more.json"), "--key", at("key.pem"), "--kid", "k-1");
    expect(more.stderr).toContain("not covered by the signature: preferredTransport.");
    const invalid = await runInProcess("card", "sign", at("other.json"), "--key", at("key.pem"), "--kid", "k-1");
    expect([invalid.code, invalid.stderr]).toEqual([1, expect.stringContaining("not a valid card")]);
    const keyless = await runInProcess("card", "sign", at("card.json"), "--key", at("card.json"), "--kid", "k-1");
    expect([keyless.code, keyless.stderr]).toEqual([1, expect.stringContaining("no private key")]);
    expect((await sign("--alg", "HS256")).code).toBe(2);
    expect((await sign("--jku", "http://keys.example/set")).code).toBe(2);
    expect((await runInProcess("card", "sign", at("card.json"), "--key", at("key.pem"))).code).toBe(2);
  });
});

describe("signatures when talking to agents", () => {
  it("[A2ACLI_CARD_GET_004] are reported by card get", async () => {
    const absent = await runInProcess("card", "get", "-a", agent.url);
    expect([absent.code, absent.stderr]).toEqual([0, ""]);
    expect(absent.stdout.match(/Signature.*/gi)).toEqual(["Signature: absent"]);
    const signed = await runInProcess("card", "get", "-a", at("signed.json"), "--card-key", at("public.pem"));
    expect(signed.stdout).toContain("Signature: verified (key k-1, ES256)");
    const unknown = await runInProcess("card", "get", "-a", at("signed.json"), "-o", "json");
    expect(unknown.stderr).toContain("Signature: unverifiable (The key k-1 is not trusted here.)");
    expect(JSON.parse(unknown.stdout)).toMatchObject(CARD);
  });

  it("are required where that is asked for", async () => {
    agent.replies = { SendMessage: { result: { task: task("COMPLETED") } } };
    const before = agent.received.length;
    const refused = await runInProcess("send", "-a", agent.url, "--text", "x", "--signatures", "require");
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("It is not signed.")]);
    expect(agent.received).toHaveLength(before);
    const preferred = await runInProcess("send", "-a", agent.url, "--text", "x", "--signatures", "prefer");
    expect([preferred.code, preferred.stderr]).toEqual([0, expect.stringContaining("It is not signed.")]);
    expect((await runInProcess("send", "-a", agent.url, "--text", "x", "--signatures", "maybe")).code).toBe(2);
  });
});

describe("credentials", () => {
  it("go to another origin than the card's only where that is named", async () => {
    await using home = await elsewhere(agent);
    agent.replies = { GetTask: { result: task("COMPLETED") } };
    const last = () => agent.received.at(-1)?.headers.authorization;
    const kept = await runInProcess("task", "get", "-a", home.url, "--bearer", "planted-secret", "t-1");
    expect([kept.code, last()]).toEqual([0, undefined]);
    expect(kept.stderr).toContain("--credential-origin");
    expect(kept.stderr).not.toContain("planted-secret");
    const given = ["--bearer", "planted-secret", "--credential-origin", agent.url];
    const sent = await runInProcess("task", "get", "-a", home.url, ...given, "t-1");
    expect([sent.code, last()]).toEqual([0, "Bearer planted-secret"]);
  });

  it("in the query stay there too", async () => {
    await using home = await elsewhere(agent);
    home.agent.card = {
      ...home.agent.card,
      securitySchemes: { key: { apiKeySecurityScheme: { location: "query", name: "key" } } },
    };
    agent.replies = { GetTask: { result: task("COMPLETED") } };
    await runInProcess("task", "get", "-a", home.url, "--api-key", "planted-secret", "t-1");
    expect(agent.received.at(-1)?.path).toBe("/rpc");
    const origin = ["--credential-origin", agent.url];
    await runInProcess("task", "get", "-a", home.url, "--api-key", "planted-secret", ...origin, "t-1");
    expect(agent.received.at(-1)?.path).toBe("/rpc?key=planted-secret");
  });
});

/** A card at one place whose interface is the given agent. */
async function elsewhere({ url }: TestAgent) {
  const home = await startTestAgent();
  home.card = { supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }] };
  return { agent: home, url: home.url, [Symbol.asyncDispose]: () => home.close() };
}
