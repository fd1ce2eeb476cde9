/** `dragoman serve` as it is published, over a folder of files that a test may change while it runs. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CLI, cleanEnvironment } from "../built/cli.ts";
import { closeLater, createFolder } from "../support/lifecycle.ts";
import { callRpc } from "../support/raw-http.ts";
import { userMessage } from "../support/wire-client.ts";

export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly agent?: string;
  readonly task?: string;
  readonly [field: string]: unknown;
}

interface Status {
  readonly state: string;
  readonly message?: { readonly parts: readonly { readonly text?: string }[] };
}

export interface TaskJson {
  readonly id: string;
  readonly status: Status;
  readonly artifacts?: readonly {
    readonly name?: string;
    readonly parts: readonly { readonly text?: string; readonly raw?: string; readonly data?: unknown }[];
  }[];
  readonly history?: readonly unknown[];
}

export class ServedFolder {
  readonly folder = createFolder();
  url = "";
  #child: ChildProcess | undefined;
  #stderr = "";
  #stdout = "";
  #changed: (() => void)[] = [];
  #ended: Promise<{ readonly code: number | null; readonly signal: string | null }> | undefined;

  /** The process ends with the test, or with the file. */
  constructor(files: Readonly<Record<string, string>>) {
    closeLater(() => this.stop());
    for (const [path, text] of Object.entries(files)) this.write(path, text);
  }

  path(path: string): string {
    return join(this.folder, path);
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(this.path(path)), { recursive: true });
    writeFileSync(this.path(path), text);
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Resolves when it says where it listens. */
  async start(words: readonly string[] = [], environment: Readonly<Record<string, string>> = {}): Promise<void> {
    const all = [CLI, "serve", "dragoman.yaml", "--port", "0", "--grpc-port", "off", ...words];
    const child = spawn(process.execPath, all, {
      cwd: this.folder,
      env: cleanEnvironment(environment),
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    this.#stderr = "";
    this.#stdout = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
      this.#tell();
    });
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.#stdout += text;
      this.#tell();
    });
    this.#ended = new Promise((resolve) => {
      child.once("close", (code, signal) => {
        this.#child = undefined;
        resolve({ code, signal });
        this.#tell();
      });
    });
    this.url = await this.#until(() => /listens on (http:\S+)[\s\S]*\n\n/.exec(this.#stdout)?.[1]);
  }

  get log(): readonly LogLine[] {
    return this.#stderr
      .split("\n")
      .filter((line) => line.startsWith("{") && line.endsWith("}"))
      .map((line) => JSON.parse(line) as LogLine);
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Resolves with the first line of the log after the first `skip` ones that matches. */
  logged(matches: (line: LogLine) => boolean, skip = 0): Promise<LogLine> {
    return this.#until(() => this.log.slice(skip).find(matches));
  }

  ended(): Promise<{ readonly code: number | null; readonly signal: string | null }> {
    return this.#ended ?? Promise.reject(new Error("It was not started."));
  }

  async post(agent: string, method: string, params: object): Promise<{ readonly result?: unknown; error?: unknown }> {
    return (await callRpc(`${this.url}/agents/${agent}`, method, params)).json;
  }

  /** One message; resolves with the task when it has ended or waits, or at once for `returnImmediately`. */
  async send(agent: string, text: string, more: object = {}): Promise<TaskJson> {
    const { result, error } = await this.post(agent, "SendMessage", { message: userMessage(text), ...more });
    if (result === undefined) throw new Error(JSON.stringify(error));
    return (result as { readonly task: TaskJson }).task;
  }

  /** The text of a direct answer. */
  async ask(agent: string, text: string): Promise<string | undefined> {
    const { result } = await this.post(agent, "SendMessage", { message: userMessage(text) });
    return (result as { readonly message?: Status["message"] }).message?.parts[0]?.text;
  }

  async stop(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#ended;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  #tell(): void {
    const changed = this.#changed;
    this.#changed = [];
    for (const run of changed) run();
  }

  async #until<T>(look: () => T | undefined): Promise<T> {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      if (this.#child === undefined) throw new Error(`It ended. ${this.#stderr}`);
      await new Promise<void>((resolve) => this.#changed.push(resolve));
    }
  }
}

export const saidBy = (task: TaskJson): string | undefined => task.status.message?.parts[0]?.text;
