import { createServer, type Server } from "node:http";
import { describe, expect, it } from "vitest";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import { ProtocolError } from "../../src/core/model/errors.ts";
import { MESSAGE_CODECS } from "../../src/features/conformance/cli/conformance.ts";
import { CredentialsNeeded, type Progress, renderText, runConformance } from "../../src/features/conformance/index.ts";
import { createTckAgent } from "../../src/features/writers/tck.ts";
import { listen, startServer } from "../support/lifecycle.ts";
import { callRpc } from "../support/raw-http.ts";
import { get, list, set } from "./paths.ts";
import { startProxy } from "./proxy.ts";
import { checksOf, readCard } from "./report-helpers.ts";

describe("a run", () => {
  it("says of an agent that cannot be steered what it could not show, and blames it for nothing", async () => {
    const server = await startServer({ agents: { echo: createEchoAgent() } });
    const report = await runConformance({ ...(await readCard(server.url)), codecs: MESSAGE_CODECS, patienceMs: 2_000 });
    const failed = report.groups.flatMap(({ requirements }) =>
      requirements.filter(({ level, status }) => level === "MUST" && status === "failed"),
    );
    expect(failed, renderText(report)).toEqual([]);
    const reasons = new Set(checksOf(report).flatMap(({ reason, status }) => (status === "not-shown" ? [reason] : [])));
    expect(reasons).toContain("the agent never requires input");
    expect(reasons).toContain("the agent ends its tasks at once");
    expect(report.tally.MUST.passed).toBeGreaterThan(200);
  });

  it("blames a server once for a wrong code, and not for refusing files that its card does not accept", async () => {
    const proxy = await startProxy();
    const server = await startServer({ agents: { echo: createEchoAgent() }, publicUrl: proxy.url });
    proxy.to(`http://127.0.0.1:${server.port}`);
    proxy.spoil({
      answer: ({ body }) => {
        if (get(body, "error.code") === -32001) set(body, "error", { code: -32603, message: "Task not found." });
      },
    });
    const { cardText, cardUrl } = await readCard(proxy.url);
    const textOnly = JSON.stringify({ ...JSON.parse(cardText), defaultInputModes: ["text"] });
    const narrow = {
      bindings: ["JSONRPC"],
      versions: ["1.0"],
      only: ["interface-answers", "get-unknown-task"],
    } as const;
    const report = await runConformance({ cardUrl, cardText, ...narrow });
    const statuses = report.groups.flatMap(({ requirements }) => requirements.map(({ id, status }) => [id, status]));
    expect(Object.fromEntries(statuses)).toMatchObject({
      "CARD-PROTO-003": "passed",
      "VER-SERVER-001": "passed",
      "CORE-GET-002": "failed",
    });
    const files = await runConformance({
      cardUrl: "file:///card.json",
      cardText: textOnly,
      ...narrow,
      only: ["DM-BYTES-001"],
    });
    expect(checksOf(files)).toMatchObject([{ status: "not-shown", reason: "the card accepts no files" }]);
  });

  it("can be narrowed to bindings, versions, a level, requirements and checks", async () => {
    const server = await startServer({ agents: { tck: createTckAgent() } });
    const card = await readCard(server.url);
    const narrow = { bindings: ["HTTP+JSON"], versions: ["1.0"] } as const;
    const report = await runConformance({ ...card, ...narrow, only: ["CORE-GET-002", "card-etag"] });
    expect(report.groups.map(({ subject }) => subject.kind)).toEqual(["card", "interface"]);
    expect(checksOf(report).map(({ name }) => name)).toEqual(["card-etag", "get-unknown-task"]);
    const must = await runConformance({ ...card, ...narrow, level: "MUST", only: ["card-etag", "get-unknown-task"] });
    expect(checksOf(must).map(({ name }) => name)).toEqual(["get-unknown-task"]);
  });

  it("reads a card from a file and tests what it names", async () => {
    const server = await startServer({ agents: { tck: createTckAgent() } });
    const { cardText } = await readCard(server.url);
    const report = await runConformance({ cardUrl: "file:///card.json", cardText, only: ["card-fetched", "get-task"] });
    expect(checksOf(report).find(({ name }) => name === "card-fetched")).toMatchObject({
      status: "not-shown",
      reason: "the card came from a file",
    });
    expect(
      checksOf(report)
        .filter(({ name }) => name === "get-task")
        .map(({ status }) => status),
    ).toContain("passed");
  });

  it("tells its progress, and leaves no task of its own open", async () => {
    const server = await startServer({ agents: { tck: createTckAgent({ streamingTimeoutMs: 100 }) } });
    const seen: Progress[] = [];
    await runConformance({
      ...(await readCard(server.url)),
      bindings: ["JSONRPC"],
      versions: ["1.0"],
      only: ["context-of-task", "cancel-task", "subscribe-begins-with-task"],
      onProgress: (progress) => seen.push(progress),
    });
    expect(seen.map(({ requirements, result }) => `${requirements.join()} ${result.status}`)).toEqual([
      "CORE-MULTI-005 passed",
      "CORE-CANCEL-001 passed",
      "STREAM-SUB-001 passed",
    ]);
    const { json } = await callRpc(server.url, "ListTasks");
    const states = list(json, "result.tasks").map((task) => get(task, "status.state"));
    expect(new Set(states)).toEqual(new Set(["TASK_STATE_CANCELED"]));
    expect(states.length).toBeGreaterThan(2);
  });

  it("ends with the first MUST that fails, if asked to", async () => {
    const cardText = await cardOf(createServer((_request, response) => response.writeHead(500).end("no")));
    const report = await runConformance({ cardUrl: "file:///card.json", cardText, failFast: true });
    const results = checksOf(report);
    expect(results.filter(({ status }) => status === "failed").length).toBeLessThan(5);
    expect(results.at(-1)).toMatchObject({ status: "not-shown", reason: "the run ended before" });
    expect(report).toMatchObject({ complete: false, conformant: false });
  });

  it("waits for no answer longer than configured, and ends when it is aborted", async () => {
    const cardText = await cardOf(createServer(() => {}));
    const only = ["get-unknown-task", "cancel-unknown-task"];
    const patient = await runConformance({ cardUrl: "file:///card.json", cardText, only, requestTimeoutMs: 50 });
    expect(checksOf(patient)[0]).toMatchObject({
      status: "failed",
      reason: expect.stringContaining("no answer within 0.05 s"),
    });
    const stop = new AbortController();
    const running = runConformance({ cardUrl: "file:///card.json", cardText, only, signal: stop.signal });
    stop.abort();
    const stopped = await running;
    expect(stopped.complete).toBe(false);
    expect(new Set(checksOf(stopped).map(({ reason }) => reason))).toEqual(new Set(["the run ended before"]));
  });

  it("does not begin without the credentials it needs", async () => {
    const server = await startServer({
      agents: { tck: createTckAgent() },
      authenticate: ({ headers }) => {
        if (headers.authorization === undefined) throw new ProtocolError("UNAUTHENTICATED", "Who are you?");
        return { owner: "alice", authenticated: true };
      },
    });
    const card = await readCard(server.url);
    const only = { bindings: ["JSONRPC"], versions: ["1.0"] } as const;
    await expect(runConformance({ ...card, ...only })).rejects.toThrow(CredentialsNeeded);
  });
});

/** The card of an agent at a server that is no agent. */
async function cardOf(server: Server): Promise<string> {
  const url = `http://127.0.0.1:${await listen(server)}`;
  const supportedInterfaces = [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
  return JSON.stringify({ name: "Deaf", supportedInterfaces, capabilities: { streaming: true } });
}
