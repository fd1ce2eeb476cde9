/** An agent and a registry that try to control the terminal of those who look at them. */
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startTestAgent, type TestAgent } from "../../src/core/cli/testing/agent-server.ts";
import { SILENT_LOG } from "../../src/core/model/ports.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import { openStore } from "../../src/core/store/open.ts";
import { hasPostgres, startPostgres } from "../../src/features/cluster/postgres/testing/start-postgres.ts";
import { scriptRegistry } from "../../src/features/registry/client/testing/scripted-registry.ts";
import { ROOT } from "../built/cli.ts";
import { createProject, type Project } from "../built/project.ts";
import { openTerminal } from "../built/terminal.ts";
import { compileScript } from "../support/compiled-script.ts";

/** Clipboard, window title, screen, colours in C1, direction of writing, the line before, a field of its own. */
const EVIL =
  "evil\u001b]52;c;ZXZpbA==\u0007\u001b]0;owned\u001b\\\u001b[2J\u009b31m\u202e\u2066\u200f\u2028\u0085\u200b\r\u001b[1A\u0008\u007f\n\nState: TASK_STATE_FORGED\nError: FORGED";

let agent: TestAgent;
let project: Project;
beforeEach(async () => {
  agent = await startTestAgent();
  project = createProject();
});
afterEach(async () => {
  await agent.close();
  project.remove();
});

const part = { text: EVIL, filename: EVIL, mediaType: EVIL, metadata: { [EVIL]: EVIL } };
const parts = [
  part,
  { ...part, text: "" },
  { data: { [EVIL]: [EVIL] } },
  { raw: "aGk=", filename: `${EVIL}.txt`, mediaType: EVIL },
  { url: `https://e.example/${EVIL}`, filename: EVIL },
];
const message = { messageId: EVIL, role: "ROLE_AGENT", contextId: EVIL, parts, metadata: { k: EVIL } };
const artifact = { artifactId: EVIL, name: EVIL, description: EVIL, parts, metadata: { k: EVIL } };
const ids = { taskId: EVIL, contextId: EVIL };
const taskOf = (state: string) => ({
  id: EVIL,
  contextId: EVIL,
  status: { state: `TASK_STATE_${state}`, message, timestamp: "2026-01-01T00:00:00Z" },
  artifacts: [artifact],
  history: [{ ...message, role: "ROLE_USER" }, message],
  metadata: { [EVIL]: EVIL },
});

function becomeHostile(): void {
  const scheme = { oauth2SecurityScheme: { description: EVIL, flows: {} } };
  agent.card = {
    name: EVIL,
    description: EVIL,
    version: EVIL,
    provider: { organization: EVIL, url: EVIL },
    documentationUrl: EVIL,
    capabilities: { streaming: true, pushNotifications: true, extensions: [{ uri: EVIL, description: EVIL }] },
    securitySchemes: { [EVIL]: scheme },
    defaultInputModes: [EVIL],
    defaultOutputModes: [EVIL],
    skills: [{ id: EVIL, name: EVIL, description: EVIL, tags: [EVIL], examples: [EVIL] }],
  };
  const events = [
    { task: taskOf("WORKING") },
    { statusUpdate: { ...ids, status: { state: "TASK_STATE_WORKING", message } } },
    { artifactUpdate: { ...ids, artifact } },
    { artifactUpdate: { ...ids, artifact: { ...artifact, parts: [{ text: "x\n" }] } } },
    { artifactUpdate: { ...ids, append: true, artifact: { ...artifact, parts: [{ text: EVIL.slice(-50) }] } } },
    { statusUpdate: { ...ids, status: { state: "TASK_STATE_INPUT_REQUIRED", message } } },
  ];
  const config = { id: EVIL, taskId: EVIL, url: `https://e.example/${EVIL}` };
  agent.replies = {
    SendMessage: { result: { task: taskOf("INPUT_REQUIRED") } },
    SendStreamingMessage: { events },
    SubscribeToTask: { events },
    GetTask: { result: taskOf("INPUT_REQUIRED") },
    ListTasks: { result: { tasks: [taskOf("WORKING")], nextPageToken: EVIL, pageSize: 1, totalSize: 2 } },
    CancelTask: { error: { code: -32002, message: EVIL } },
    CreateTaskPushNotificationConfig: { result: config },
    GetTaskPushNotificationConfig: { result: config },
    ListTaskPushNotificationConfigs: { result: { configs: [config] } },
  };
}

async function startHostileRegistry(): Promise<string> {
  const item = {
    id: "a1",
    identifier: EVIL,
    displayName: EVIL,
    description: EVIL,
    version: EVIL,
    url: `${agent.url}/.well-known/agent-card.json#${EVIL}`,
    capabilities: [EVIL],
    tags: [EVIL],
    type: "application/a2a-agent-card+json",
    metadata: { health: EVIL, dialects: EVIL },
    registration: { problem: EVIL, findings: [{ requirement: EVIL, message: EVIL }] },
  };
  const { url } = await scriptRegistry({
    "GET /registry/agents": [200, { items: [item], total: 3, pageToken: EVIL }],
    "GET /registry/agents/a1": [200, item],
    "GET /registry/agents/other": [404, { errorCode: EVIL, message: EVIL }],
    "POST /registry/search": [
      200,
      { results: [{ ...item, score: 1, source: EVIL }], unanswered: [{ url: EVIL, reason: EVIL }] },
    ],
  });
  return url;
}

/** What the command line writes by itself: colours, the status line, and the prompt of a chat. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal acts on
const OWN = /\r?\u001b\[(?:[AK]|0?J|1?G|3G|(?:1|2|22|31|33|39)m)|\r+\n/g;
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be left
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

function expectHarmless(written: string): void {
  const rest = written.replace(OWN, "\n");
  const found = UNSAFE.exec(rest)?.index;
  expect(found === undefined ? "" : JSON.stringify(rest.slice(Math.max(0, found - 200), found + 40))).toBe("");
  expect(rest).not.toMatch(/^(State|Error):? .*FORGED/m);
}

describe("what others write", () => {
  it("is shown by every command, and neither obeyed nor taken for a field", async () => {
    becomeHostile();
    const registry = await startHostileRegistry();
    const [a, from] = [
      ["-a", agent.url],
      ["--registry", registry],
    ];
    const workflow = project.write("w.yaml", `name: w\nsteps:\n  only: { url: "${agent.url}" }\n`);
    const config = project.write("dragoman.yaml", `agents:\n  evil: { remote: "${agent.url}" }\n`);
    const lines: readonly (readonly string[])[] = [
      ...[[], ["-v"], ["--validate"], ["-o", "json"], ["--debug"]].map((more) => ["card", "get", ...a, ...more]),
      ["card", "verify", ...a],
      ...[[], ["-v"], ["-o", "json"], ["--debug"]].flatMap((more) => [
        ["send", ...a, "hi", ...more],
        ["send", ...a, "hi", "--stream", ...more],
        ["task", "get", "t", ...a, "--history", "5", ...more],
        ["task", "subscribe", "t", ...a, ...more],
      ]),
      ...[[], ["--history", "5"], ["-o", "text"], ["-o", "json"]].map((more) => ["task", "list", ...a, ...more]),
      ["task", "cancel", "t", ...a],
      ["task", "cancel", "t", ...a, "-o", "json"],
      ["task", "download", "t", ...a, "--directory", project.folder],
      ["task", "push-config", "create", "t", ...a, "--url", "https://e.example/"],
      ["task", "push-config", "get", "t", "c", ...a],
      ["task", "push-config", "list", "t", ...a],
      ["auth", "login", ...a],
      ["doctor", config],
      ["run", workflow, "--config", config, "--text", "hi"],
      ["registry", "list", ...from],
      ["registry", "list", ...from, "-o", "json"],
      ["registry", "search", "x", ...from],
      ["registry", "show", "a1", ...from],
      ["registry", "show", "other", ...from],
      ["send", "-a", "a1", ...from, "hi"],
    ];
    const script = await compileScript(join(ROOT, "test/terminal/commands.ts"));
    const terminal = openTerminal([project.write("lines.json", JSON.stringify(lines))], 200, script);
    const { written } = await terminal.ended;
    expect(written.match(/^exit \d/gm)).toHaveLength(lines.length);
    expectHarmless(written);
  });

  it("does not reach the terminal in a chat", async () => {
    becomeHostile();
    const chatting = openTerminal(["chat", "-a", agent.url], 80);
    await chatting.shows(/> /);
    chatting.type("hello\r");
    await chatting.shows(/TASK_STATE_INPUT_REQUIRED\]/);
    chatting.type("/quit\r");
    const { code, written } = await chatting.ended;
    expect(code).toBe(0);
    expect(written).toContain("evil\\x1b]52;");
    expectHarmless(written);
  });

  it.runIf(hasPostgres())("does not reach the terminal from the nodes of a cluster", async () => {
    const server = await startPostgres();
    try {
      const url = server.url("hostile");
      const store = await openStore(url, { baseDirectory: "", clock: systemClock, log: SILENT_LOG });
      const counts = { queued: EVIL, streams: EVIL, commits: EVIL, events: EVIL, commitMs: EVIL };
      const report = { agents: [EVIL], ...counts, takenOver: EVIL, fenced: EVIL, missedWakeups: EVIL };
      await store.heartbeat(EVIL, 600_000, JSON.stringify(report));
      // Eight characters of an id are shown, eleven of a host's name.
      await store.heartbeat("node\u001b]0;x\u0007", 600_000, JSON.stringify(report));
      await server.run("UPDATE hostile.node SET host = E'h\\x1b[2J\\u202e\\n\\nState: TASK_STATE_FORGED'");
      const watching = openTerminal(["top", "--store", url, "--interval", "100ms"], 500);
      await watching.shows(/evil\\x1b\]52;/);
      watching.type("\u0003");
      const { code, written } = await watching.ended;
      await store.close();
      expect(code).toBe(0);
      expectHarmless(written);
    } finally {
      await server.close();
    }
  });
});
