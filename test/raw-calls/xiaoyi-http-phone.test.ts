/** What a person reads on a phone, as raw requests and frames of a running server, in both languages. */

import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import { defineAgent } from "../../src/index.ts";
import { listen, startServer } from "../support/lifecycle.ts";
import { openRequest, sendRaw } from "../support/raw-http.ts";

const KEYS = { zh: "key-zh", en: "key-en", spec: "key-spec" };
type Entry = keyof typeof KEYS;

/** Follows orders, with as few words as possible. */
const obedient = defineAgent({
  name: "Obedient",
  description: "Follows orders.",
  async *run(turn) {
    switch (turn.text) {
      case "throw":
        throw new Error("secret reason");
      case "fail":
        yield turn.failed("我自己的话");
        break;
      case "reject":
        yield { status: "TASK_STATE_REJECTED" };
        break;
      case "authorize":
        yield { status: "TASK_STATE_AUTH_REQUIRED" };
        break;
      case "data beside text":
        yield turn.artifact({ name: "both", parts: [{ text: "三点开会" }, { data: { hour: 3 } }] });
        break;
      case "data":
        yield turn.artifact({ name: "data", parts: [{ data: { hour: 3 } }] });
        break;
      case "parts":
        yield turn.artifact({ name: "parts", text: JSON.stringify(turn.message.parts) });
        break;
      default:
        yield turn.artifact({ name: "one", text: "一" });
        yield turn.artifact({ name: "one", text: "二", append: true });
        yield turn.artifact({ name: "two", text: "三" });
    }
  },
});

const late = defineAgent({
  name: "Late",
  description: "Never comes.",
  timeout: 1,
  async *run(turn) {
    yield turn.working("…");
    await new Promise((resolve) => turn.signal.addEventListener("abort", resolve, { once: true }));
  },
});

let occupied = (): void => {};
const started = new Promise<void>((resolve) => {
  occupied = resolve;
});
const busy = defineAgent({
  name: "Busy",
  description: "Works on one thing.",
  async *run(turn) {
    yield turn.working("…");
    occupied();
    await new Promise((resolve) => turn.signal.addEventListener("abort", resolve, { once: true }));
  },
});

const files = createServer((_request, response) => response.writeHead(404).end());
const origin = `http://127.0.0.1:${await listen(files)}`;
const agents = { obedient, late, echo: createEchoAgent() };
const entries = (names: readonly string[]) =>
  names.flatMap((agent) => [
    { agent, apiKey: KEYS.zh },
    { agent, apiKey: KEYS.en, owner: "en", language: "en" as const },
    { agent, apiKey: KEYS.spec, owner: "spec", render: "spec" as const },
  ]);
const server = await startServer({
  agents,
  xiaoyi: { http: entries(Object.keys(agents)), files: { allowHosts: ["127.0.0.1"] } },
});
const limited = await startServer({
  limits: { tasksPerOwner: 1 },
  agents: { busy },
  xiaoyi: { http: entries(["busy"]) },
});

interface Frame {
  readonly id: unknown;
  readonly result?: {
    readonly kind: string;
    readonly final: boolean;
    readonly lastChunk?: boolean;
    readonly status?: { readonly state: string; readonly message?: { readonly parts: readonly Part[] } };
    readonly artifact?: { readonly artifactId: string; readonly parts: readonly Part[] };
  };
  readonly error: { readonly code: number; readonly message: string };
}

interface Part {
  readonly kind: string;
  readonly text?: string;
}

let asked = 0;

function request(entry: Entry, parts: readonly object[] | string) {
  const message = { role: "user", parts: typeof parts === "string" ? [{ kind: "text", text: parts }] : parts };
  const params = { id: `task-${++asked}`, sessionId: `session-${asked}`, message };
  return {
    method: "POST",
    path: "/agent/message",
    headers: { "content-type": "application/json", authorization: KEYS[entry] },
    body: JSON.stringify({ jsonrpc: "2.0", id: `r-${asked}`, method: "message/stream", params }),
  };
}

async function ask(agent: string, entry: Entry, parts: readonly object[] | string): Promise<Frame[]> {
  const { body } = await sendRaw(`${server.url}/agents/${agent}`, request(entry, parts));
  const frames = [...body.toString().matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data as string) as Frame);
  return frames.length === 0 ? [JSON.parse(body.toString()) as Frame] : frames;
}

/** What the phone shows in the end: the text that replaced all before it. */
function shownBy(frames: readonly Frame[]): string {
  const texts = frames.flatMap(({ result }) => result?.artifact?.parts ?? []).filter(({ kind }) => kind === "text");
  return texts.at(-1)?.text ?? "";
}

describe("a person reads in the language of the entry", () => {
  it.each([
    [
      "that the agent failed",
      "obedient",
      "throw",
      "智能体处理这条消息时出错了，请稍后重试。",
      "The agent failed while it worked on this message.",
    ],
    [
      "that it took too long",
      "late",
      "go",
      "智能体未能在 0.001 秒内完成任务。",
      "The agent did not finish within 0.001 s.",
    ],
    [
      "that it wants to be authorized",
      "obedient",
      "authorize",
      "任务需要您的授权",
      "The task needs your authorization.",
    ],
    ["what the agent itself wrote", "obedient", "fail", "我自己的话", "我自己的话"],
  ])("%s", async (_, agent, text, zh, en) => {
    expect(shownBy(await ask(agent, "zh", text))).toBe(zh);
    expect(shownBy(await ask(agent, "en", text))).toBe(en);
  });

  it.each([
    ["fail", "任务执行异常，请重试", "The task failed. Please try again."],
    ["reject", "智能体拒绝了该请求", "The agent rejected the request."],
  ])("how a task ended beside its last frame: %s", async (text, zh, en) => {
    for (const [entry, message] of [
      ["zh", zh],
      ["en", en],
    ] as const) {
      const last = (await ask("obedient", entry, text)).at(-1);
      expect(last).toMatchObject({ result: { final: true }, error: { code: 99_921_111, message } });
    }
  });

  it("that a file is not taken", async () => {
    const bytes = Buffer.from("%PDF").toString("base64");
    const file = [{ kind: "file", file: { name: "a.pdf", mimeType: "application/pdf", bytes } }];
    expect((await ask("late", "zh", file))[0]?.error.message).toBe("智能体不支持这类内容（application/pdf）。");
    expect((await ask("late", "en", file))[0]?.error.message).toBe(
      "This agent does not take application/pdf; its inputModes are text/plain, application/json.",
    );
  });

  it("that a file could not be fetched", async () => {
    const file = [{ kind: "file", file: { name: "a.txt", mimeType: "text/plain", uri: `${origin}/a.txt` } }];
    expect(shownBy(await ask("echo", "zh", file))).toContain('[无法获取文件 "a.txt"：文件服务器返回了状态码 404。]');
    expect(shownBy(await ask("echo", "en", file))).toContain(
      '[The file "a.txt" could not be fetched. It was answered with 404.]',
    );
  });

  it("that the agent is busy", async () => {
    const url = `${limited.url}/agents/busy`;
    const open = await Promise.all((["zh", "en"] as const).map((entry) => openRequest(url, request(entry, "work"))));
    await started;
    for (const [entry, message] of [
      ["zh", "当前请求较多，请稍后再试。"],
      ["en", "Too many of your tasks are under way."],
    ] as const) {
      const { body, status } = await sendRaw(url, request(entry, "more"));
      expect([status, JSON.parse(body.toString()).error]).toEqual([429, { code: 99_911_113, message }]);
    }
    for (const { hangUp } of open) hangUp();
  });

  it("that users cannot log in", async () => {
    for (const [entry, message] of [
      ["zh", "该智能体不支持用户登录。"],
      ["en", "Users cannot log in to this agent."],
    ] as const) {
      const raw = request(entry, "");
      const parts = [{ kind: "data", data: { authCode: "c" } }];
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "authorize", params: { message: { parts } } });
      const reply = await sendRaw(`${server.url}/agents/echo`, { ...raw, body });
      expect(reply.json.error).toEqual({ code: -32004, message });
    }
  });

  it("that a request is wrong, and developers read beside it what is wrong", async () => {
    const dance = '{"jsonrpc":"2.0","id":1,"method":"dance"}';
    const empty = '{"jsonrpc":"2.0","id":1,"method":"message/stream","params":{"id":"t","sessionId":"s"}}';
    for (const [entry, body, message, reason] of [
      ["zh", dance, "暂不支持此操作。", "Method not found."],
      ["en", dance, "This operation is not supported.", "Method not found."],
      ["zh", empty, "消息无法处理，可能格式有误或内容过大。", "params.message is required"],
      ["en", empty, "The message is malformed or too large.", "params.message is required"],
    ] as const) {
      const reply = await sendRaw(`${server.url}/agents/echo`, { ...request(entry, ""), body });
      expect(reply.json.error).toMatchObject({ message, data: { reason } });
    }
  });
});

describe("a phone", () => {
  it("shows data only where it stands alone", async () => {
    expect(shownBy(await ask("obedient", "zh", "data beside text"))).toBe("三点开会");
    expect(shownBy(await ask("obedient", "zh", "data"))).toBe('\n```json\n{\n  "hour": 3\n}\n```\n');
    const [both] = (await ask("obedient", "spec", "data beside text")).flatMap(({ result }) => result?.artifact ?? []);
    expect(both?.parts).toEqual([
      { kind: "text", text: "三点开会" },
      { kind: "data", data: { hour: 3 } },
    ]);
  });

  it("may send a file with its bytes and an address from which nothing can be fetched", async () => {
    const bytes = Buffer.from("早上好").toString("base64");
    const photo = Buffer.from([0xff, 0xd8, 0xff]).toString("base64");
    const frames = await ask("echo", "zh", [
      { kind: "text", text: "parts" },
      { kind: "file", file: { name: "a.txt", mimeType: "text/plain", uri: `${origin}/gone`, bytes } },
    ]);
    expect(shownBy(frames)).toContain("早上好");
    expect(shownBy(frames)).not.toContain("无法获取");
    expect(JSON.stringify(frames)).not.toContain(bytes);
    const file = { name: "p.jpg", mimeType: "image/jpeg", uri: "http://10.0.0.1/p.jpg", bytes: photo };
    expect(shownBy(await ask("echo", "zh", [{ kind: "file", file }]))).toBe("p.jpg");
  });
});

describe("with render: spec", () => {
  it("every artifact is closed by its last chunk, before the end", async () => {
    const frames = await ask("obedient", "spec", "two artifacts");
    const chunks = frames.flatMap(({ result }) =>
      result?.artifact === undefined ? [] : [{ id: result.artifact.artifactId, last: result.lastChunk === true }],
    );
    const ids = [...new Set(chunks.map(({ id }) => id))];
    expect(ids).toHaveLength(2);
    for (const id of ids) {
      expect(chunks.filter((chunk) => chunk.id === id && chunk.last)).toHaveLength(1);
      expect(chunks.findLast((chunk) => chunk.id === id)?.last).toBe(true);
    }
    expect(frames.at(-1)?.result).toMatchObject({ kind: "status-update", final: true });
  });
});

describe("a caller that is refused", () => {
  it("is answered under no id: its request is not read", async () => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: "r-1", method: "message/stream", params: {} });
    for (const authorization of ["wrong", ""]) {
      const headers = { "content-type": "application/json", authorization };
      const raw = { method: "POST", path: "/agent/message", headers, body };
      const reply = await sendRaw(`${server.url}/agents/echo`, raw);
      expect(reply.status).toBe(401);
      expect(reply.json).toMatchObject({ jsonrpc: "2.0", id: null, error: { code: -32600 } });
    }
  });
});
