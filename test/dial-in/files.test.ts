/** Files for agents that dial in: those made for the platform read `file.uri` and nothing else. */
import { describe, expect, it } from "vitest";
import type { Log } from "../../src/core/model/ports.ts";
import { createDialInAgent } from "../../src/features/xiaoyi/server/dial-in-agent.ts";
import type { ServeOptions } from "../../src/index.ts";
import { HTTP_BINDINGS } from "../support/http-bindings.ts";
import { startServer } from "../support/lifecycle.ts";
import { userMessage, WireClient } from "../support/wire-client.ts";
import { type Credentials, type PlatformRequest, RawAgent, signedHeaders } from "./raw-agent.ts";

const HELPER: Credentials = { agentId: "agent-1", ak: "access-1", sk: "secret-1" };
const BYTES = Buffer.from([0, 1, 2, 250, 251, 252]);
const FILE = { raw: BYTES.toString("base64"), filename: "Übersicht 2026.pdf", mediaType: "application/pdf" };

let logged: string[] = [];

async function start(options: Partial<ServeOptions> = {}): Promise<{ url: string; client: WireClient }> {
  logged = [];
  const keep = (fields: object, line: string) => logged.push(JSON.stringify([fields, line]));
  const log: Log = { debug: keep, info: keep, warn: keep, error: keep };
  const far = createDialInAgent({ ...HELPER, name: "Far", description: "Elsewhere." });
  const { port } = await startServer({ grpcPort: false, agents: { far }, log, ...options });
  const url = `http://127.0.0.1:${port}`;
  return { url, client: new WireClient(HTTP_BINDINGS[0], url) };
}

function uriOf({ params }: PlatformRequest, index = 0): string {
  const uri = params.message.parts[index]?.file?.uri;
  if (uri === undefined) throw new Error("The file has no address.");
  return uri;
}

describe("a file that a caller sends as bytes", () => {
  it("is at an address of this server while its task runs, and comes as bytes too", async () => {
    const { client, url } = await start();
    const agent = await RawAgent.dial(url, HELPER);
    const sent = client.task(userMessage([{ text: "Read this." }, FILE]));
    const request = await agent.next();
    const uri = uriOf(request, 1);
    expect(request.params.message.parts[1]).toEqual({
      kind: "file",
      file: { name: FILE.filename, mimeType: FILE.mediaType, uri, bytes: FILE.raw },
    });
    // 43 characters of base64url are 256 bits.
    expect(uri).toMatch(new RegExp(`^${url}/openclaw/v1/files/[\\w-]{43}$`));

    const got = await fetch(uri);
    expect([got.status, Buffer.from(await got.arrayBuffer())]).toEqual([200, BYTES]);
    expect(Object.fromEntries(got.headers)).toMatchObject({
      "content-type": "application/pdf",
      "content-length": "6",
      "content-disposition": `attachment; filename="_bersicht 2026.pdf"; filename*=UTF-8''%C3%9Cbersicht%202026.pdf`,
      "x-content-type-options": "nosniff",
      "cache-control": "private, no-store",
    });
    const head = await fetch(uri, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "6", ""]);
    for (const method of ["POST", "PUT", "DELETE"]) {
      const refused = await fetch(uri, { method });
      expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    }
    expect((await fetch(`${uri}x`)).status).toBe(404);

    agent.text(request, "Read.", { final: true });
    await sent;
    const late = await fetch(uri);
    expect([late.status, await late.json()]).toMatchObject([404, { error: { status: "NOT_FOUND" } }]);
    expect(logged.join("\n")).not.toContain(uri.slice(-43));
  });

  it("stays there while the agent waits for an answer to its question, and goes with the task", async () => {
    const { client, url } = await start();
    const agent = await RawAgent.dial(url, HELPER);
    const sent = client.task(userMessage([FILE]));
    const first = await agent.next();
    agent.status(first, "input-required", { text: "Which page?" });
    const { contextId, id: taskId } = await sent;
    expect((await fetch(uriOf(first))).status).toBe(200);
    const answered = client.task(userMessage("Two", { taskId, contextId }));
    agent.text(await agent.next(), "Done.", { final: true });
    await answered;
    expect((await fetch(uriOf(first))).status).toBe(404);
  });

  it("goes when the task is cancelled", async () => {
    const { client, url } = await start();
    const agent = await RawAgent.dial(url, HELPER);
    const started = await client.start(userMessage([FILE]));
    const request = await agent.next();
    expect((await fetch(uriOf(request))).status).toBe(200);
    const cancelled = client.cancel(started.id);
    agent.cancelled(request, await agent.next());
    await cancelled;
    expect((await fetch(uriOf(request))).status).toBe(404);
  });

  it("needs no credentials where callers do, and is at the public address where there is one", async () => {
    const { client, url } = await start({
      publicUrl: "https://agents.example.com/base/",
      auth: { apiKeys: [{ key: "a-key-of-alice-s-own", owner: "alice" }] },
    });
    const agent = await RawAgent.dial(url, HELPER);
    const sent = client.task(userMessage([FILE]), {}, { "x-api-key": "a-key-of-alice-s-own" });
    const request = await agent.next();
    const uri = uriOf(request);
    expect(uri).toMatch(/^https:\/\/agents\.example\.com\/base\/openclaw\/v1\/files\/[\w-]{43}$/);
    const got = await fetch(uri.replace("https://agents.example.com/base", url));
    expect(Buffer.from(await got.arrayBuffer())).toEqual(BYTES);
    agent.text(request, "Read.", { final: true });
    await sent;
  });

  it("is at the address that the agent dialled, or that of the socket where it named none that can be used", async () => {
    const { client, url } = await start();
    for (const [host, origin] of [
      ["relay.internal:8080", "http://relay.internal:8080"],
      ["a/b@evil.example", url],
    ] as const) {
      const agent = await RawAgent.dial(url, HELPER, { ...signedHeaders(HELPER), host });
      const sent = client.task(userMessage([FILE]));
      const request = await agent.next();
      expect(uriOf(request).slice(0, origin.length + 1)).toBe(`${origin}/`);
      const path = new URL(uriOf(request)).pathname;
      expect((await fetch(url + path)).status).toBe(200);
      agent.text(request, "Read.", { final: true });
      await sent;
    }
  });

  it.each([false, true])("that can be offered at no address is a declared loss; strict: %s", async (strict) => {
    const { client, url } = await start({ strict });
    const agent = await RawAgent.dial(url, HELPER);
    const crowd = client.task(userMessage(Array.from({ length: 1_000 }, () => ({ raw: "aGk=", filename: "hi.txt" }))));
    const first = await agent.next();
    const sent = client.task(userMessage([FILE]));
    if (strict) {
      const { status } = await sent;
      expect(status.state).toBe("TASK_STATE_FAILED");
      expect(JSON.stringify(status)).toContain("message.parts[0].raw cannot be expressed here");
    } else {
      const request = await agent.next();
      const file = { name: FILE.filename, mimeType: FILE.mediaType, bytes: FILE.raw };
      expect(request.params.message.parts).toEqual([{ kind: "file", file }]);
      agent.text(request, "Read.", { final: true });
      await sent;
    }
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toMatch(/dragoman_losses_total\{[^}]*dialect="xiaoyi-link"[^}]*\} 1\n/);
    agent.text(first, "Read.", { final: true });
    await crowd;
  });
});
