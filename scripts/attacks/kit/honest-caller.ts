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

/** Calls and connections that make a server of one that has just started one that has been in use. */
const WARM_UP_CALLS = 2_000;
const WARM_UP_CONNECTIONS = 20;

interface CallerOptions {
  readonly isSecure?: boolean;
  /** Opens a connection for each call. */
  readonly reconnects?: boolean | undefined;
}

function createCaller(port: number, key: string, { isSecure = false, reconnects = false }: CallerOptions) {
  const agent = isSecure
    ? new SecureAgent({ keepAlive: !reconnects, rejectUnauthorized: false })
    : new Agent({ keepAlive: !reconnects });
  const headers = { "content-type": "application/json", "a2a-version": "1.0", "x-api-key": key };
  const options = { agent, port, host: "127.0.0.1", path: "/agents/echo", method: "POST", headers };
  /** Calls back once, with whether the call was answered. */
  const call = (end: (isAnswered: boolean) => void): void => {
    const sent = (isSecure ? requestSecurely : request)(options, (answer) => {
      let body = "";
      answer.setEncoding("utf8").on("data", (piece: string) => (body += piece));
      answer.on("end", () => end(answer.statusCode === 200 && body.includes("hello")));
      answer.on("error", () => end(false));
    });
    sent.on("error", () => end(false));
    sent.end(BODY);
  };
  return { call, close: () => agent.destroy() };
}

/** Has the server compile its code and its heap grow to its usual size, which an attack is not to be blamed for. */
export async function warmUp(port: number, key: string, options: CallerOptions = {}): Promise<void> {
  const { call, close } = createCaller(port, key, options);
  let left = WARM_UP_CALLS;
  const callAgain = async (): Promise<void> => {
    while (left-- > 0) await new Promise(call);
  };
  await Promise.all(Array.from({ length: WARM_UP_CONNECTIONS }, callAgain));
  close();
}

/** Calls every 100 ms with valid credentials, whether or not earlier calls were answered. */
export function startHonestCaller(port: number, key: string, options: CallerOptions = {}) {
  const caller = createCaller(port, key, options);
  const latencies: number[] = [];
  const waiting = new Set<number>();
  let failed = 0;
  const call = (): void => {
    if (waiting.size >= MAX_WAITING) return;
    const began = performance.now();
    waiting.add(began);
    caller.call((isAnswered) => {
      if (!waiting.delete(began)) return;
      latencies.push(performance.now() - began);
      if (!isAnswered) failed++;
    });
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
      caller.close();
      return record;
    },
  };
}
