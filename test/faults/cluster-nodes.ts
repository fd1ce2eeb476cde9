/** Nodes on one database, and what can happen to them. */
import { type ChildProcess, fork } from "node:child_process";
import type { Target } from "./client.ts";
import { DatabaseProxy } from "./database-proxy.ts";

export class ClusterNode {
  readonly proxy: DatabaseProxy;
  readonly #args: readonly string[];
  readonly #script: string;
  #child: ChildProcess | undefined;
  /** Undefined while it does not listen. */
  url: string | undefined;

  private constructor(proxy: DatabaseProxy, script: string, args: readonly string[]) {
    this.proxy = proxy;
    this.#script = script;
    this.#args = args;
  }

  /** `script` is plain JavaScript. */
  static async open(storeUrl: string, leaseMs: number, script: string): Promise<ClusterNode> {
    const store = new URL(storeUrl);
    const proxy = await DatabaseProxy.open(Number(store.port));
    store.port = String(proxy.port);
    return new ClusterNode(proxy, script, [store.href, String(leaseMs)]);
  }

  /** A node that cannot reach the database in time ends; as often as that happens, it is started again. */
  async start(): Promise<void> {
    do {
      const child = fork(this.#script, this.#args, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
      this.#child = child;
      this.url = await new Promise<string | undefined>((resolve) => {
        child.once("message", (message) => resolve((message as { url: string }).url));
        child.once("exit", () => resolve(undefined));
      });
    } while (this.url === undefined);
  }

  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#child?.kill(signal);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.url = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    await new Promise<void>((resolve) => {
      child.once("exit", () => resolve());
      child.kill("SIGKILL");
    });
  }

  async close(): Promise<void> {
    await this.kill();
    this.proxy.close();
  }
}

/** Callers go to any node that listens, and move on to another from time to time. */
export function anyOf(nodes: readonly ClusterNode[], random: () => number): Target {
  return {
    get url() {
      const listening = nodes.flatMap(({ url }) => (url === undefined ? [] : [url]));
      return Promise.resolve(listening[Math.floor(random() * listening.length)] ?? "http://127.0.0.1:9");
    },
    leaves: () => random() < 1 / 25,
  };
}
