import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Endpoint } from "../client/requests.ts";
import type { Memory, Question, Reply, Settings } from "./protocol.ts";

export type ContestantName = "dragoman" | "dragoman-workflow" | "a2a-js" | "bare" | "bare-grpc" | "bare-link";

export interface Contestant extends Endpoint {
  /** CPU microseconds that the server process has used since its start. */
  cpu(): Promise<number>;
  readonly pid: number;
  /** Memory after garbage collection. */
  memory(): Promise<Memory>;
  stop(): Promise<void>;
}

/** Starts a contestant in a separate process and waits until it listens. */
export async function launch(name: ContestantName, settings: Settings): Promise<Contestant> {
  const file = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
  const child = fork(file, [JSON.stringify(settings)], {
    execArgv: ["--import", "tsx", "--expose-gc", "--no-warnings"],
    env: { ...process.env, NODE_ENV: "production" },
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  const complaint = complaintOf(child);
  const ask = <Key extends string>(question: Question, key: Key) => {
    const answer = nextReply(child, key, complaint);
    child.send(question);
    return answer;
  };
  const { ready } = await nextReply(child, "ready", complaint);
  return {
    ...ready,
    pid: child.pid!,
    cpu: async () => (await ask("cpu", "cpu")).cpu,
    memory: async () => (await ask("memory", "memory")).memory,
    stop: () => stop(child),
  };
}

type ReplyWith<Key extends string> = Extract<Reply, Record<Key, unknown>>;

/** The relevant line of what the process wrote to stderr. */
export function complaintOf(child: ChildProcess): () => string {
  let complaint = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    complaint = (complaint + text).slice(-2000);
  });
  return () => reasonIn(complaint);
}

/** The next reply with this key. Rejects if the process ends, since it will never reply. */
export function nextReply<Key extends string>(
  child: ChildProcess,
  key: Key,
  complaint: () => string,
): Promise<ReplyWith<Key>> {
  return new Promise((resolve, reject) => {
    const isAnswer = (reply: Reply): reply is ReplyWith<Key> => key in reply;
    const settle = () => {
      child.off("message", onMessage);
      child.off("exit", onExit);
    };
    const onMessage = (reply: Reply) => {
      if (!isAnswer(reply)) return;
      settle();
      resolve(reply);
    };
    const onExit = (code: number | null, signal: NodeJS.Signals | null) => {
      settle();
      reject(new Error(`the server process ended with ${code ?? signal}: ${complaint()}`));
    };
    child.on("message", onMessage);
    child.on("exit", onExit);
  });
}

/** The line of a crash report with the error. */
function reasonIn(complaint: string): string {
  const lines = complaint.trim().split("\n");
  return lines.find((line) => /^\w*Error\b/.test(line)) ?? lines.at(-1) ?? "";
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.send("stop" satisfies Question);
  const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
  await exit;
  clearTimeout(timer);
}
