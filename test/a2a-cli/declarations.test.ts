/** What the command line tells an agent about its user, and what of it the card has to declare first. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startTestAgent, type TestAgent, task } from "../../src/core/cli/testing/agent-server.ts";
import { runInProcess } from "../../src/core/cli/testing/run-in-process.ts";
import type { JsonObject } from "../../src/core/model/json.ts";
import { closeLater, createFolder } from "../support/lifecycle.ts";

let agent: TestAgent;
beforeEach(async () => {
  vi.stubEnv("HOME", "/nonexistent");
  agent = await startTestAgent();
  closeLater(() => agent.close());
});
afterEach(() => vi.unstubAllEnvs());

const KEY_IN_HEADER = { apiKeySecurityScheme: { location: "header", name: "X-Agent-Key" } };
const BEARER = { httpAuthSecurityScheme: { scheme: "Bearer" } };

describe("the extended card", () => {
  const extended = (...words: readonly string[]) =>
    runInProcess("card", "get", "--extended", "-a", agent.url, ...words);
  const declare = (securitySchemes: JsonObject) => {
    agent.card = { capabilities: { extendedAgentCard: true }, securitySchemes };
  };
  beforeEach(() => {
    const card = { ...CARD, name: "All of it", supportedInterfaces: [] };
    agent.replies.GetExtendedAgentCard = { result: card };
  });
  const CARD = {
    description: "x",
    version: "1",
    capabilities: {},
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: [],
  };

  it("[A2ACLI_CARD_GET_003] is fetched with a credential that the card has a scheme for", async () => {
    declare({ key: KEY_IN_HEADER, token: BEARER });
    const byToken = await extended("--bearer", "planted-token");
    expect([byToken.code, byToken.stdout]).toEqual([0, expect.stringContaining("Name: All of it\n")]);
    expect(agent.received[0]?.headers).toMatchObject({ authorization: "Bearer planted-token", "a2a-version": "1.0" });
    const byKey = await extended("--api-key", "planted-key", "-o", "json");
    expect(JSON.parse(byKey.stdout).name).toBe("All of it");
    expect(agent.received[1]?.headers["x-agent-key"]).toBe("planted-key");
    for (const { headers } of agent.cardRequests) expect(JSON.stringify(headers)).not.toContain("planted");
  });

  it.each<[string, readonly string[], JsonObject]>([
    ["a token for an agent that takes a key", ["--bearer", "planted"], { key: KEY_IN_HEADER }],
    ["a key for an agent that takes a token", ["--api-key", "planted"], { token: BEARER }],
    ["a token for an agent that declares nothing", ["--bearer", "planted"], {}],
    ["a header with a token", ["--svc-param", "Authorization:Bearer planted"], { key: KEY_IN_HEADER }],
    ["a header with a key", ["--svc-param", "X-Other-Key:planted"], { key: KEY_IN_HEADER }],
  ])("[A2ACLI_CARD_GET_003, A2ACLI_AUTH_008] is not asked for with %s", async (_, flags, schemes) => {
    declare(schemes);
    const { code, stdout } = await extended(...flags, "-o", "json");
    expect(code).toBe(4);
    expect(JSON.parse(stdout).error).toMatchObject({
      code: "A2ACLI_ERR_CREDENTIALS_MISSING",
      message: expect.stringContaining(`accepts ${flags[0]}`),
    });
    expect(agent.received).toEqual([]);
    for (const { headers } of agent.cardRequests) expect(JSON.stringify(headers)).not.toContain("planted");
  });

  it("[A2ACLI_AUTH_008] gets what is declared of several credentials, and other parameters", async () => {
    declare({ key: KEY_IN_HEADER });
    const flags = ["--bearer", "planted-token", "--api-key", "key", "--svc-param", "X-Trace-Id:t1"];
    expect((await extended(...flags)).code).toBe(0);
    expect(agent.received[0]?.headers).toMatchObject({ "x-agent-key": "key", "x-trace-id": "t1" });
    expect(agent.received[0]?.headers).not.toHaveProperty("authorization");
  });

  it("[A2ACLI_AUTH_008] gets no login for a scheme that has become another one", async () => {
    const state = createFolder();
    vi.stubEnv("XDG_STATE_HOME", state);
    mkdirSync(join(state, "dragoman"), { recursive: true });
    declare({ own: BEARER });
    vi.stubEnv("A2ACLI_BEARER", "planted-token");
    expect((await runInProcess("auth", "login", "-a", agent.url)).code).toBe(0);
    vi.stubEnv("A2ACLI_BEARER", "");
    expect((await extended()).code).toBe(0);
    declare({ own: KEY_IN_HEADER });
    await extended();
    expect(agent.received.map(({ headers }) => headers.authorization)).toEqual(["Bearer planted-token", undefined]);
  });

  it("[A2ACLI_VER_003] is not asked for if the card does not offer it", async () => {
    agent.card = { capabilities: {} };
    const { code, stdout } = await extended("-o", "json");
    expect([code, JSON.parse(stdout).error.code]).toEqual([1, "UnsupportedOperationError"]);
    expect(agent.received).toEqual([]);
  });
});

describe("[A2ACLI_VER_002] extensions that the card requires", () => {
  const uri = "https://example.com/ext/invoice/v1";
  const need = (...uris: readonly string[]) => {
    const extensions = uris.map((one) => ({ uri: one, required: true }));
    agent.card = { capabilities: { extensions: [...extensions, { uri: "urn:optional" }] } };
    agent.replies = { SendMessage: { result: { task: task("COMPLETED") } }, GetTask: { result: task("COMPLETED") } };
  };
  const declared = () => agent.received.map(({ headers }) => headers["a2a-extensions"]);

  it("are not declared if they are not implemented here, with a warning and an error that name them", async () => {
    need(uri);
    const flag = `--svc-param 'A2A-Extensions: ${uri}'`;
    const { code, stderr } = await runInProcess("send", "-a", agent.url, "--text", "pay");
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining(`Warning: The agent requires ${uri}, which is not impl`),
    ]);
    expect(stderr).toContain(flag);
    agent.replies.GetTask = { error: { code: -32008, message: "Extension required." } };
    const refused = await runInProcess("task", "get", "-a", agent.url, "task-1", "-o", "json");
    expect([refused.code, JSON.parse(refused.stdout).error]).toEqual([
      1,
      {
        code: "ExtensionSupportRequiredError",
        a2aCode: -32008,
        message: expect.stringMatching(/^Extension required\. It requires .*--svc-param 'A2A-Extensions: /),
        hint: expect.stringContaining("card get lists the extensions"),
      },
    ]);
    expect(declared()).toEqual([undefined, undefined]);
  });

  it("are declared if the user names them", async () => {
    need(uri);
    const named = ["--svc-param", `A2A-Extensions:urn:optional, ${uri}`];
    const { code, stderr } = await runInProcess("send", "-a", agent.url, "--text", "pay", ...named);
    expect([code, stderr]).toEqual([0, ""]);
    expect(declared()).toEqual([`urn:optional,${uri}`]);
  });

  it("need no warning where they are implemented, and none are declared where none is required", async () => {
    need("urn:dragoman:ext:idempotency:v1");
    expect((await runInProcess("send", "-a", agent.url, "--text", "pay")).stderr).toBe("");
    need();
    expect((await runInProcess("send", "-a", agent.url, "--text", "pay")).stderr).toBe("");
    expect(declared()).toEqual(["urn:dragoman:ext:idempotency:v1", undefined]);
  });
});
