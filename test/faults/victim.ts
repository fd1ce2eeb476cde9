import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { compileScript } from "../support/compiled-script.ts";

const CHILD = "./child.ts";

/** A server that is killed and started again, over the same file. */
export class Victim {
  readonly #file: string;
  readonly #script: Promise<string>;
  #child: ChildProcess | undefined;
  #url: Promise<string>;
  #announce: (url: string) => void = () => {};
  kills = 0;
  runsResumed = 0;
  runsFailedByCrash = 0;

  /** `script` is what it runs, beside this file. */
  constructor(file: string, script = CHILD) {
    this.#file = file;
    this.#script = compileScript(fileURLToPath(new URL(script, import.meta.url)));
    this.#url = this.#nextUrl();
  }

  /** Where it listens, as soon as it does. */
  get url(): Promise<string> {
    return this.#url;
  }

  async start(): Promise<void> {
    const child = fork(await this.#script, [this.#file], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    this.#child = child;
    const url = await new Promise<string>((resolve, reject) => {
      child.once("message", (message) => resolve((message as { url: string }).url));
      child.once("exit", (code) => reject(new Error(`The server ended with ${code} before it listened.`)));
    });
    await this.#readCounters(url);
    this.#announce(url);
  }

  async kill(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return;
    this.#url = this.#nextUrl();
    await new Promise<void>((resolve) => {
      child.removeAllListeners("exit");
      child.once("exit", () => resolve());
      child.kill(signal);
    });
    this.kills++;
    this.#child = undefined;
  }

  #nextUrl(): Promise<string> {
    return new Promise((resolve) => {
      this.#announce = resolve;
    });
  }

  /** Recovery is over before the server listens, so that one look per life sees all of it. */
  async #readCounters(url: string): Promise<void> {
    const text = await (await fetch(`${url}/metrics`)).text();
    this.runsResumed += counter(text, "dragoman_runs_resumed_total");
    this.runsFailedByCrash += counter(text, "dragoman_runs_failed_by_crash_total");
  }
}

function counter(text: string, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? Number.NaN);
}

/** Nothing new for this long is no longer slowness. */
const STUCK_MS = 60_000;

/** Resolves when `progress` has stood still for a while, so that a test can tell what is missing instead of hanging. */
export async function untilStuck(progress: () => number): Promise<void> {
  for (let before = Number.NaN; before !== progress(); ) {
    before = progress();
    await pause(STUCK_MS, undefined, { ref: false });
  }
}
