import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createFolder, listen } from "../../../test/support/lifecycle.ts";
import { startTestAgent, statusUpdate, type TestAgent, task } from "./testing/agent-server.ts";
import { runInProcess } from "./testing/run-in-process.ts";

let agent: TestAgent;
beforeEach(async () => {
  vi.stubEnv("HOME", "/nonexistent");
  agent = await startTestAgent();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await agent.close();
});

async function deadUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

async function failure(...args: readonly string[]) {
  const { code, stdout } = await runInProcess(...args, "-o", "json");
  return { exit: code, ...JSON.parse(stdout).error };
}

describe("exit codes agree with the error reported", () => {
  it("0: a login that the agent does not require", async () => {
    const { code, stderr, stdout } = await runInProcess("auth", "login", "-a", agent.url);
    expect([code, stderr, stdout]).toEqual([0, "The agent requires no login.\n", ""]);
    expect((await runInProcess("auth", "login", "-a", agent.url, "-o", "json")).stdout).toBe("[]\n");
    expect(await failure("auth", "login", "-a", agent.url, "--scheme", "key")).toMatchObject({ exit: 4 });
  });

  it("[A2ACLI_EXIT_001, A2ACLI_SEND_005] 2: wrong usage", async () => {
    for (const args of [
      ["send", "-a", agent.url, "--bogus"],
      ["frobnicate"],
      ["task", "get", "-a", agent.url],
      ["send", "hello"],
      ["send", "-a", agent.url, "--media-type", "text/plain", "--text", "x"],
      ["send", "-a", agent.url, "hello", "--timeout", "soon"],
      ["task", "list", "-a", agent.url, "--status", "bored"],
      ["card", "get", "-a", agent.url, "unexpected"],
    ]) {
      expect(await failure(...args), args.join(" ")).toMatchObject({
        exit: 2,
        code: "A2ACLI_ERR_USAGE",
        a2aCode: null,
      });
    }
    expect(agent.received).toEqual([]);
  });

  it("[A2ACLI_EXIT_001] 3: connection refused, or no card", async () => {
    expect(await failure("send", "-a", await deadUrl(), "hello")).toMatchObject({
      exit: 3,
      code: "A2ACLI_ERR_UNREACHABLE",
    });
    for (const reference of [`${agent.url}/nothing.json`, "./no-such-card.json", "ftp://agent.example"]) {
      expect(await failure("card", "get", "-a", reference)).toMatchObject({
        exit: 3,
        code: "A2ACLI_ERR_CARD_NOT_FOUND",
      });
    }
  });

  it("3: says that there is no TLS, and that no registry knows a name", async () => {
    const { message } = await failure("send", "-a", agent.url.replace("http:", "https:"), "hello");
    expect(message).toMatch(/^No TLS: https:.* does not answer with TLS at this port\. Use http:\/\//);
    const registry = await deadUrl();
    for (const name of ["hello", "skill:talk"]) {
      const unknown = await failure("send", "-a", name, "--registry", registry, "hello");
      expect(unknown).toMatchObject({ exit: 3, message: expect.stringMatching(/registry .*127\.0\.0\.1/) });
    }
  });

  it("[A2ACLI_EXIT_001] 1: something that is not a card, or one without a supported interface", async () => {
    agent.card = { name: "", supportedInterfaces: "none" };
    expect(await failure("send", "-a", agent.url, "hello")).toMatchObject({ exit: 1, code: "A2ACLI_ERR_CARD_INVALID" });
    const file = join(createFolder(), "card.json");
    writeFileSync(file, '{"name":"Helper","supportedInterfaces":[]}');
    expect((await failure("send", "-a", file, "hello")).message).toMatch(/has no interface: neither/);
    agent.card = { supportedInterfaces: [{ url: "xds:///a:1", protocolBinding: "GRPC", protocolVersion: "1.0" }] };
    expect((await failure("send", "-a", agent.url, "hello")).message).toMatch(
      /offers GRPC 1\.0 at "xds:\/\/\/a:1", which is not an address that can be called/,
    );
    agent.card = {
      supportedInterfaces: [{ url: `${agent.url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "0.3" }],
    };
    expect(await failure("send", "-a", agent.url, "hello", "--a2a-version", "1.0")).toMatchObject({
      exit: 1,
      code: "VersionNotSupportedError",
      message: expect.stringContaining("offers only 0.3, not A2A 1.0"),
    });
    expect(await failure("send", "-a", agent.url, "hello", "--dialect", "a2a-v1")).toMatchObject({
      exit: 1,
      code: "DRAGOMAN_ERR_NO_INTERFACE",
      message: expect.stringContaining("offers JSONRPC 0.3"),
    });
    expect(agent.received).toEqual([]);
  });

  it("[A2ACLI_EXIT_001, A2ACLI_OUT_004] 4: credentials that are missing or refused", async () => {
    agent.replies.GetTask = { status: 401 };
    agent.card = { securitySchemes: { k: { apiKeySecurityScheme: { location: "header", name: "X-Key" } } } };
    expect(await failure("task", "get", "-a", agent.url, "task-1")).toMatchObject({
      exit: 4,
      code: "A2ACLI_ERR_CREDENTIALS_MISSING",
      hint: expect.stringContaining("A2ACLI_API_KEY"),
    });
    expect(await failure("task", "get", "-a", agent.url, "task-1", "--api-key", "wrong")).toMatchObject({
      exit: 4,
      code: "A2ACLI_ERR_AUTH_FAILED",
    });
    expect(agent.received.at(-1)?.headers["x-key"]).toBe("wrong");
  });

  it("[A2ACLI_EXIT_001] 3: a connection that is closed, with a hint if the card asks for a client certificate", async () => {
    const port = await listen(createServer((_, response) => response.destroy()));
    const url = `http://127.0.0.1:${port}/rpc`;
    const supportedInterfaces = [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
    const closed = { exit: 3, code: "A2ACLI_ERR_UNREACHABLE", message: expect.stringMatching(/^Connection/) };
    agent.card = { supportedInterfaces };
    const args = ["task", "get", "-a", agent.url, "task-1"];
    expect(await failure(...args)).toMatchObject({ ...closed, hint: null });
    agent.card = { supportedInterfaces, securitySchemes: { tls: { mtlsSecurityScheme: {} } } };
    expect(await failure(...args)).toMatchObject({ ...closed, hint: expect.stringContaining("--client-cert") });
  });

  it("[A2ACLI_EXIT_001, A2ACLI_TASK_POLL_002] 5: a timeout, whether the agent is silent or slow", async () => {
    agent.card = { capabilities: {} };
    agent.replies.SendMessage = { silence: true };
    expect(await failure("send", "-a", agent.url, "hello", "--timeout", "200ms")).toMatchObject({
      exit: 5,
      code: "A2ACLI_ERR_TIMEOUT",
    });
  });

  it("[A2ACLI_EXIT_001, A2ACLI_OUT_004] 1: what the agent says, by the name A2A gives it", async () => {
    agent.replies.GetTask = { error: { code: -32001, message: "Gone." } };
    expect(await failure("task", "get", "-a", agent.url, "task-1")).toEqual({
      exit: 1,
      code: "TaskNotFoundError",
      message: "Gone.",
      hint: expect.stringContaining("--debug"),
      a2aCode: -32001,
    });
  });
});

describe("failures", () => {
  it("[A2ACLI_INTERACT_002] never start a new task in place of the one that was refused", async () => {
    agent.replies.SendMessage = { error: { code: -32001, message: "No such task." } };
    const { code, stderr, stdout } = await runInProcess(
      "send",
      "-a",
      agent.url,
      "--task-id",
      "gone",
      "--context-id",
      "c",
      "yes",
    );
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^Error: No such task\.\nCode: TaskNotFoundError\nHint: .*--debug/);
    expect(agent.received).toHaveLength(1);
  });

  it("[A2ACLI_OUT_003] end a stream of JSON with one line", async () => {
    agent.replies.SendStreamingMessage = {
      events: [{ task: task("WORKING") }, statusUpdate("WORKING")],
      keepOpen: true,
    };
    const args = ["send", "-a", agent.url, "hello", "--stream", "-o", "json", "--timeout", "300ms"];
    const { code, stdout } = await runInProcess(...args);
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect([code, lines.length]).toEqual([5, 3]);
    expect(lines[2].error).toMatchObject({ code: "A2ACLI_ERR_TIMEOUT", hint: expect.stringContaining("task-1") });
  });

  it("of a command line are JSON when the environment says so", async () => {
    vi.stubEnv("A2ACLI_OUTPUT", "json");
    const { code, stdout } = await runInProcess("send", "--bogus");
    expect([code, JSON.parse(stdout).error.code]).toEqual([2, "A2ACLI_ERR_USAGE"]);
  });

  it("show usage on stderr where a command is missing", async () => {
    const { code, stderr, stdout } = await runInProcess("task");
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("Usage: dragoman task");
  });
});

describe("help", () => {
  it("[A2ACLI_CLI_001, A2ACLI_DEFAULT_001] is data, and shows what is in effect", async () => {
    vi.stubEnv("A2ACLI_POLL_INTERVAL", "7s");
    vi.stubEnv("A2ACLI_BEARER", "sesame");
    const { code, stdout } = await runInProcess("help", "send");
    expect(code).toBe(0);
    const text = stdout.replace(/\s+/g, " ");
    expect(text).toContain("(default: 2s) (now: 7s, environment A2ACLI_POLL_INTERVAL)");
    expect(text).toContain("Examples: $ dragoman send -a");
    expect(text).toContain("process list");
    expect(stdout).not.toContain("sesame");
    expect((await runInProcess("--version")).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});
