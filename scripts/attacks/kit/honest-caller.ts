import { Agent, request } from "node:http";
import { request as requestSecurely, Agent as SecureAgent } from "node:https";

export interface HonestRecord {
  /** In milliseconds, in the order of the calls. */
  readonly latencies: readonly number[];
  /** Calls that were refused or failed. */
  readonly failed: number;
}

const EVERY_MS = 100;
/** More waiting calls than this are not added to: the record is bad enough. */
const MAX_WAITING = 100;

const BODY = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "SendMessage",
  params: { message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }] } },
});

/** Calls every 100 ms with valid credentials, whether or not earlier calls were answered. */
export function startHonestCaller(port: number, key: string, { isSecure = false, reconnects = false } = {}) {
  const agent = isSecure
    ? new SecureAgent({ keepAlive: !reconnects, rejectUnauthorized: false })
    : new Agent({ keepAlive: !reconnects });
  const latencies: number[] = [];
  const waiting = new Set<number>();
  let failed = 0;
  const call = (): void => {
    if (waiting.size >= MAX_WAITING) return;
    const began = performance.now();
    waiting.add(began);
    const end = (isAnswered: boolean) => {
      if (!waiting.delete(began)) return;
      latencies.push(performance.now() - began);
      if (!isAnswered) failed++;
    };
    const headers = { "content-type": "application/json", "a2a-version": "1.0", "x-api-key": key };
    const sent = (isSecure ? requestSecurely : request)(
      { agent, port, host: "127.0.0.1", path: "/agents/echo", method: "POST", headers },
      (answer) => {
        let body = "";
        answer.setEncoding("utf8").on("data", (piece: string) => (body += piece));
        answer.on("end", () => end(answer.statusCode === 200 && body.includes("hello")));
        answer.on("error", () => end(false));
      },
    );
    sent.on("error", () => end(false));
    sent.end(BODY);
  };
  const timer = setInterval(call, EVERY_MS);
  return {
    /** Forgets what was recorded so far. */
    restart(): void {
      latencies.length = 0;
      failed = 0;
    },
    /** Calls that still wait count with the time they have waited. */
    stop(): HonestRecord {
      clearInterval(timer);
      const now = performance.now();
      const all = [...latencies, ...[...waiting].map((began) => now - began)];
      const record = { latencies: all, failed };
      waiting.clear();
      agent.destroy();
      return record;
    },
  };
}
