/** Sends hostile requests over HTTP and judges what comes back. */
import { expect } from "vitest";
import { openRequest, readAll, sharedConnections } from "../support/raw-http.ts";
import type { Scene } from "../support/scene.ts";
import type { HostileRequest, Known } from "./hostile-request.ts";
import { type HostileReply, judge, type Verdict } from "./judge.ts";

/** A stream may stay open for ever, so of streams only the beginning is read. */
async function ask(base: string, { raw }: HostileRequest): Promise<HostileReply> {
  const reply = await openRequest(base, raw, sharedConnections);
  const { status, headers, response } = reply;
  if (headers["content-type"] !== "text/event-stream") {
    return { status, headers, body: (await readAll(response)).toString("utf8") };
  }
  const body = await new Promise<string>((resolve) => {
    response.once("data", (chunk: Buffer) => resolve(chunk.toString("utf8")));
    response.once("end", () => resolve(""));
  });
  response.on("error", () => {});
  reply.hangUp();
  return { status, headers, body };
}

/** The whole batch at once. */
export function judged(scene: Scene, agent: string, requests: readonly HostileRequest[]): Promise<Verdict[]> {
  const { url } = scene.server;
  const baseOf = ({ atRoot }: HostileRequest) => (atRoot === true ? url : `${url}/agents/${agent}`);
  return Promise.all(requests.map(async (request) => judge(request, await ask(baseOf(request), request))));
}

export async function expectRefused(scene: Scene, agent: string, requests: readonly HostileRequest[]): Promise<void> {
  const verdicts = await judged(scene, agent, requests);
  for (const [at, { label, lane, raw }] of requests.entries()) {
    expect(verdicts[at], `${lane}: ${label} ${raw.path ?? ""} ${String(raw.body).slice(0, 500)}`).toBe("refused");
  }
}

/** A task that has ended and one that waits, for requests to be about. */
export async function prepare(scene: Scene, agent: string): Promise<Known> {
  const client = scene.client(agent);
  const [ended, waiting] = [await client.task("artifact ok"), await client.task("input more?")];
  return { ended: ended.id, waiting: waiting.id };
}
