import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startTestAgent, statusUpdate, type TestAgent, task, textChunk } from "../testing/agent-server.ts";
import { runInProcess } from "../testing/run-in-process.ts";

const FINISHED = task("COMPLETED", {
  artifacts: [{ artifactId: "artifact-1", name: "answer", parts: [{ text: "Hello!" }, { data: { n: 1 } }] }],
});
const STREAM = [
  { task: task("SUBMITTED") },
  statusUpdate("WORKING", "Thinking"),
  textChunk("Hel"),
  textChunk("lo!", { append: true, lastChunk: true }),
  statusUpdate("COMPLETED"),
];

let agent: TestAgent;
beforeEach(async () => {
  vi.stubEnv("HOME", "/nonexistent");
  agent = await startTestAgent();
  agent.replies = {
    SendStreamingMessage: { events: STREAM },
    SendMessage: { result: { task: FINISHED } },
    GetTask: { result: FINISHED },
  };
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await agent.close();
});

const methods = () => agent.received.map(({ body }) => body.method);
const lines = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("send", () => {
  it("[A2ACLI_SEND_001, A2ACLI_SEND_002, A2ACLI_SEND_004, A2ACLI_INTERACT_004, A2ACLI_OUT_001, A2ACLI_OUT_005] waits for the outcome and prints it with the identifiers and the next command", async () => {
    const { code, stderr, stdout } = await runInProcess("send", "-a", agent.url, "--text", "hello");
    expect(stdout).toBe(
      'Artifact: answer\nText:\n  Hello!\n\nData:\n  {\n    "n": 1\n  }\n\n' +
        "Task ID: task-1\nContext ID: context-1\nState: TASK_STATE_COMPLETED\n" +
        `Resume: dragoman send -a ${agent.url} --context-id context-1 --text '<message>'\n`,
    );
    expect(stderr).toBe("");
    expect(code).toBe(0);
    expect(methods()).toEqual(["SendStreamingMessage", "GetTask"]);
  });

  it("prints what the agent wrote while it worked if it asks or ends without a message", async () => {
    const events = [
      { task: task("SUBMITTED") },
      statusUpdate("WORKING", "It is"),
      statusUpdate("WORKING", " 330 m."),
      statusUpdate("INPUT_REQUIRED"),
    ];
    agent.replies = { SendStreamingMessage: { events }, GetTask: { result: task("INPUT_REQUIRED") } };
    const { stdout } = await runInProcess("send", "-a", agent.url, "hello");
    expect(stdout).toContain("Message: from agent\nText:\n  It is 330 m.\n\nTask ID: task-1\n");
  });

  it("[A2ACLI_INTERACT_003, A2ACLI_TX_003, A2ACLI_VER_001] names the addressee and the version on every request, and makes up no identifier", async () => {
    await runInProcess("send", "-a", agent.url, "hello", "there");
    for (const { body, headers } of agent.received) {
      expect(headers["a2a-version"]).toBe("1.0");
      expect(body.params).toMatchObject({ tenant: "acme" });
    }
    expect(agent.received[0]?.body.params).toEqual({
      tenant: "acme",
      message: { messageId: expect.any(String), role: "ROLE_USER", parts: [{ text: "hello there" }] },
    });
  });

  it("[A2ACLI_TX_003] omits the tenant where the card has none", async () => {
    agent.card = {
      supportedInterfaces: [{ url: `${agent.url}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    };
    await runInProcess("send", "-a", agent.url, "hello");
    expect(agent.received[0]?.body.params).not.toHaveProperty("tenant");
  });

  it("[A2ACLI_SEND_005, A2ACLI_SEND_006, A2ACLI_INTERACT_001, A2ACLI_AUTH_001] carries parts in order, and context, metadata and service parameters where they belong", async () => {
    await runInProcess(
      ...[
        "send",
        "-a",
        agent.url,
        "--text",
        "one",
        "--data",
        '{"n":2}',
        "--media-type",
        "application/x",
        "--text",
        "three",
      ],
      ...["--context-id", "c-9", "--metadata", '{"k":"v"}', "--svc-param", "x-trace:abc", "--async"],
    );
    expect(agent.received[0]?.body).toMatchObject({
      method: "SendMessage",
      params: {
        message: {
          contextId: "c-9",
          parts: [{ text: "one" }, { data: { n: 2 }, mediaType: "application/x" }, { text: "three" }],
        },
        configuration: { returnImmediately: true },
        metadata: { k: "v" },
      },
    });
    expect(agent.received[0]?.headers["x-trace"]).toBe("abc");
  });

  it("[A2ACLI_OUT_002] prints one JSON document: the terminal response", async () => {
    const { stdout } = await runInProcess("send", "-a", agent.url, "hello", "-o", "json");
    expect(JSON.parse(stdout)).toEqual({ task: FINISHED });
  });

  it("[A2ACLI_SEND_002, A2ACLI_OUT_006] with --async prints what is needed to ask again", async () => {
    agent.replies.SendMessage = { result: { task: task("SUBMITTED") } };
    const text = await runInProcess("send", "-a", agent.url, "hello", "--async");
    expect(text.stdout).toBe(
      "Task ID: task-1\nContext ID: context-1\nState: TASK_STATE_SUBMITTED\n" +
        `Resume: dragoman task get --wait -a ${agent.url} task-1\n`,
    );
    for (const alias of ["--no-wait", "--return-immediately"]) {
      const json = await runInProcess("send", "-a", agent.url, "hello", alias, "-o", "json");
      expect(JSON.parse(json.stdout)).toEqual({ task: task("SUBMITTED") });
    }
  });

  it("[A2ACLI_SEND_003, A2ACLI_OUT_005, A2ACLI_INTERACT_004] streams events as text, the last one with the identifiers", async () => {
    const { stdout } = await runInProcess("send", "-a", agent.url, "hello", "--stream");
    expect(stdout).toContain("Message: from agent\nText:\n  Thinking\n\n");
    expect(stdout).toContain(
      "Artifact: answer\nText:\n  Hello!\n\nTask ID: task-1\nContext ID: context-1\nState: TASK_STATE_COMPLETED\n",
    );
  });

  it("[A2ACLI_OUT_003] streams events as JSON lines, the last one terminal", async () => {
    const { stdout } = await runInProcess("-o", "json", "send", "-a", agent.url, "hello", "--stream");
    expect(lines(stdout)).toEqual(STREAM);
    expect(methods()).toEqual(["SendStreamingMessage"]);
  });

  it("[A2ACLI_SEND_003] takes a message instead of a task for an answer", async () => {
    const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "Hi." }] };
    agent.replies.SendStreamingMessage = { events: [{ message }] };
    const streamed = await runInProcess("send", "-a", agent.url, "hello", "--stream", "-o", "json");
    expect([streamed.code, lines(streamed.stdout)]).toEqual([0, [{ message }]]);
    const waited = await runInProcess("send", "-a", agent.url, "hello");
    expect([waited.code, waited.stdout]).toEqual([0, "Message: from agent\nText:\n  Hi.\n\n"]);
  });

  it("[A2ACLI_SEND_003, A2ACLI_VER_003, A2ACLI_OUT_003] does not hang or fail where the agent cannot stream", async () => {
    agent.card = { capabilities: {} };
    const { code, stderr, stdout } = await runInProcess("send", "-a", agent.url, "hello", "--stream", "-o", "json");
    expect([code, lines(stdout)]).toEqual([0, [{ task: FINISHED }]]);
    expect(stderr).toContain("does not stream");
    expect(methods()).toEqual(["SendMessage"]);
  });

  it("[A2ACLI_TASK_POLL_004] falls back to a plain send where streaming is promised but refused", async () => {
    agent.replies.SendStreamingMessage = { error: { code: -32004, message: "No streaming." } };
    expect((await runInProcess("send", "-a", agent.url, "hello")).code).toBe(0);
    expect(methods()).toEqual(["SendStreamingMessage", "SendMessage"]);
  });

  it("[A2ACLI_TASK_POLL_004] asks for the task where the stream is lost", async () => {
    agent.replies.SendStreamingMessage = { events: STREAM.slice(0, 2), cut: true };
    agent.replies.SubscribeToTask = { error: { code: -32004, message: "No." } };
    agent.replies.GetTask = [{ result: task("WORKING") }, { result: FINISHED }];
    const { code, stdout } = await runInProcess(
      "send",
      "-a",
      agent.url,
      "hello",
      "--poll-interval",
      "20ms",
      "-o",
      "json",
    );
    expect([code, JSON.parse(stdout)]).toEqual([0, { task: FINISHED }]);
  });

  it("tells of connections that fail once, however often they do", async () => {
    agent.replies.SendStreamingMessage = { events: STREAM.slice(0, 2), cut: true };
    agent.replies.SubscribeToTask = [
      { status: 503 },
      { status: 503 },
      { status: 503 },
      { events: [...STREAM.slice(0, 1), ...STREAM.slice(-1)] },
    ];
    // Between two attempts to follow the task, it is read.
    agent.replies.GetTask = [{ status: 503 }, { result: FINISHED }];
    const { code, stderr } = await runInProcess("send", "-a", agent.url, "hello");
    expect(code).toBe(0);
    expect(stderr).toMatch(/^[^\n]* Resuming\.\nReached the agent again after 2 failed attempts\.\n$/);
  });

  it("[A2ACLI_SEND_002] asks again where a blocking agent answers too early", async () => {
    agent.card = { capabilities: { streaming: false } };
    agent.replies.SendMessage = { result: { task: task("WORKING") } };
    agent.replies.GetTask = [{ result: task("WORKING") }, { result: task("INPUT_REQUIRED") }];
    const { code, stderr, stdout } = await runInProcess("send", "-a", agent.url, "hello", "--poll-interval", "20ms");
    expect([code, methods()]).toEqual([0, ["SendMessage", "GetTask", "GetTask"]]);
    expect(stdout).toContain(`Resume: dragoman send -a ${agent.url} --task-id task-1 --text '<reply>'\n`);
    expect(stderr).toContain("Warning: Task task-1 waits for your reply.");
  });

  it("[A2ACLI_TASK_POLL_003, A2ACLI_INTERACT_004] stops at an interruption although the stream stays open", async () => {
    agent.replies.SendStreamingMessage = {
      events: [STREAM[0] ?? {}, statusUpdate("AUTH_REQUIRED", "Log in first.")],
      keepOpen: true,
    };
    const { code, stdout } = await runInProcess("send", "-a", agent.url, "hello", "--stream");
    expect(code).toBe(0);
    expect(stdout).toContain("Log in first.");
    expect(stdout).toContain("State: TASK_STATE_AUTH_REQUIRED\nResume: ");
  });

  it("[A2ACLI_TASK_POLL_003, A2ACLI_OUT_001] waits through a state that says nothing or is not known, with and without a stream", async () => {
    agent.replies.SendStreamingMessage = {
      events: [{ task: task("UNSPECIFIED") }, statusUpdate("MEDITATING"), { progressUpdate: {} }, ...STREAM.slice(1)],
    };
    const streamed = await runInProcess("send", "-a", agent.url, "hello", "-o", "json");
    expect([streamed.code, JSON.parse(streamed.stdout)]).toEqual([0, { task: FINISHED }]);
    agent.replies.SendMessage = { result: { task: task("UNSPECIFIED") } };
    agent.replies.GetTask = [{ result: task("MEDITATING") }, { result: FINISHED }];
    const words = ["send", "-a", agent.url, "hello", "--task-id", "task-1", "--poll-interval", "10ms", "-o", "json"];
    const polled = await runInProcess(...words);
    expect([polled.code, JSON.parse(polled.stdout)]).toEqual([0, { task: FINISHED }]);
  });

  it("[A2ACLI_INTERACT_002] continues a task, and a stream of it goes on past the state it was in", async () => {
    const stream = [{ task: task("INPUT_REQUIRED") }, statusUpdate("WORKING"), statusUpdate("COMPLETED")];
    agent.replies.SendStreamingMessage = { events: stream };
    const { stdout } = await runInProcess(
      "send",
      "-a",
      agent.url,
      "--task-id",
      "task-1",
      "yes",
      "--stream",
      "-o",
      "json",
    );
    expect(lines(stdout)).toEqual(stream);
    expect(agent.received[0]?.body.params).toMatchObject({ message: { taskId: "task-1" } });
    expect(agent.received[0]?.body.params).not.toMatchObject({ message: { contextId: expect.anything() } });
  });

  it("[A2ACLI_EXIT_002] exits 0 with a warning when the task fails: the command did its job", async () => {
    agent.replies.GetTask = { result: task("FAILED") };
    agent.replies.SendStreamingMessage = { events: [STREAM[0] ?? {}, statusUpdate("FAILED", "No.")] };
    const { code, stderr, stdout } = await runInProcess("send", "-a", agent.url, "hello", "-o", "json");
    expect([code, JSON.parse(stdout).task.status.state]).toEqual([0, "TASK_STATE_FAILED"]);
    expect(stderr).toBe("Warning: Task task-1 failed.\n");
  });

  it("[A2ACLI_AUTH_001, A2ACLI_AUTH_002] takes agent and credentials from the environment", async () => {
    vi.stubEnv("A2ACLI_AGENT_CARD", agent.url);
    vi.stubEnv("A2ACLI_BEARER", "sesame-1234");
    agent.card = { securitySchemes: { b: { httpAuthSecurityScheme: { scheme: "bearer" } } } };
    const { code, stdout } = await runInProcess("send", "hello");
    expect(code).toBe(0);
    expect(stdout).toContain("Resume: dragoman send --context-id context-1");
    expect(agent.received[0]?.headers.authorization).toBe("Bearer sesame-1234");
    expect(agent.cardRequests[0]?.headers).not.toHaveProperty("authorization");
  });

  it("[A2ACLI_OUT_007, A2ACLI_AUTH_004] shows the exchange with --debug, but never a credential", async () => {
    agent.replies.GetTask = { result: { ...FINISHED, metadata: { echoed: "sesame-1234 and key-5678" } } };
    const { stderr } = await runInProcess(
      ...["send", "-a", agent.url, "hello", "--debug", "--verbose", "--bearer", "sesame-1234"],
      ...["--api-key", "key-5678", "--svc-param", "x-secret:parameter-9"],
    );
    expect(stderr).toContain(`> POST ${agent.url}/rpc`);
    expect(stderr).toContain('"method":"SendStreamingMessage"');
    expect(stderr).toContain("[redacted] and [redacted]");
    expect(stderr).not.toMatch(/sesame-1234|key-5678|parameter-9/);
  });

  it("[A2ACLI_AUTH_003] warns when credentials go over a connection that is not verified", async () => {
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "1");
    const { code, stderr } = await runInProcess("send", "-a", agent.url, "hello", "--insecure", "--bearer", "sesame");
    expect(code).toBe(0);
    expect(stderr).toContain("Warning: --insecure: TLS certificates are not verified.");
    expect(stderr).toContain("Warning: SECURITY: credentials are sent");
  });

  it("[A2ACLI_TX_001, A2ACLI_TX_002, A2ACLI_TX_004] chooses the binding the user prefers, else the card's first", async () => {
    const entry = (protocolBinding: string, path: string) => ({
      url: `${agent.url}${path}`,
      protocolBinding,
      protocolVersion: "1.0",
    });
    agent.card = { supportedInterfaces: [entry("GRPC", ""), entry("JSONRPC", "/rpc"), entry("HTTP+JSON", "/rest")] };
    agent.replies.undefined = { result: {} };
    await runInProcess("send", "-a", agent.url, "hello", "--async");
    await runInProcess(
      "send",
      "-a",
      agent.url,
      "hello",
      "--async",
      "--transport",
      "grpc-web",
      "--transport",
      "http+json",
    );
    expect(agent.received.map(({ path }) => path)).toEqual(["/rpc", "/rest/message:send"]);
  });
});
