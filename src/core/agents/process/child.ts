import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";

export interface ChildOptions {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Time between SIGTERM and SIGKILL. */
  readonly graceMs: number;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Maximum size of the stored end of stderr. */
const MAX_STDERR_BYTES = 4_096;

const HAS_GROUPS = process.platform !== "win32";

/** Killed when this process exits, even if it exits without waiting for them. */
const alive = new Set<Child>();
let watchesExit = false;

/** A process in its own process group, so that its child processes are terminated with it. */
export class Child {
  readonly exit: Promise<Exit>;
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #graceMs: number;
  readonly #stderrClosed: Promise<void>;
  #stderr: Buffer = Buffer.alloc(0);
  #killTimer: NodeJS.Timeout | undefined;
  #stopped = false;

  private constructor(child: ChildProcessWithoutNullStreams, graceMs: number) {
    this.#process = child;
    this.#graceMs = graceMs;
    child.stderr.on("data", (chunk: Buffer) => {
      this.#stderr = Buffer.concat([this.#stderr, chunk]).subarray(-MAX_STDERR_BYTES);
    });
    this.#stderrClosed = new Promise((resolve) => {
      child.stderr.once("close", resolve);
    });
    // A process need not read its input: a broken pipe is not a failure.
    child.stdin.on("error", () => {});
    this.exit = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        resolve({ code, signal });
        // Processes that it left running may still write, but only for the grace time.
        this.#killTimer ??= this.#later("SIGKILL", () => child.stderr.destroy());
      });
      child.once("close", () => {
        alive.delete(this);
        clearTimeout(this.#killTimer);
      });
    });
    alive.add(this);
    if (!watchesExit) {
      watchesExit = true;
      process.once("exit", () => {
        for (const child of alive) child.#signal("SIGKILL");
      });
    }
  }

  /** Resolves when the process is running; rejects if it cannot be started. */
  static start({ command: [file, ...values], cwd, env, graceMs }: ChildOptions): Promise<Child> {
    return new Promise((resolve, reject) => {
      const child = spawn(file, values, { cwd, env, detached: HAS_GROUPS, stdio: "pipe", windowsHide: true });
      child.once("spawn", () => resolve(new Child(child, graceMs)));
      child.on("error", reject);
    });
  }

  /** The decoded output; the process blocks while it is not read. */
  get stdout(): AsyncIterable<string> {
    return this.#process.stdout.setEncoding("utf8");
  }

  writeInput(input: string): void {
    this.#process.stdin.end(input);
  }

  /** `stop` was called, whatever the exit code. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Sends SIGTERM to the process group, and SIGKILL after the grace time. No effect if it has exited. */
  stop(): void {
    if (!alive.has(this)) return;
    this.#stopped = true;
    this.#signal("SIGTERM");
    clearTimeout(this.#killTimer);
    this.#killTimer = this.#later("SIGKILL", () => {
      this.#process.stdout.destroy();
      this.#process.stderr.destroy();
    });
  }

  /** The end of stderr: valid UTF-8, at most 4 KB. */
  async stderrTail(): Promise<string> {
    await this.#stderrClosed;
    return lastCharacters(this.#stderr).trim();
  }

  #later(signal: NodeJS.Signals, then?: () => void): NodeJS.Timeout {
    return setTimeout(() => {
      this.#signal(signal);
      then?.();
    }, this.#graceMs).unref();
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#process;
    try {
      if (HAS_GROUPS && pid !== undefined) process.kill(-pid, signal);
      else this.#process.kill(signal);
    } catch {
      // The process group no longer exists.
    }
  }
}

function lastCharacters(bytes: Buffer): string {
  // Replacing invalid bytes makes the text longer, so it is truncated after that.
  const text = Buffer.from(withoutBrokenStart(bytes).toString("utf8"), "utf8");
  return withoutBrokenStart(text.subarray(-MAX_STDERR_BYTES)).toString("utf8");
}

/** Truncation inside a character leaves up to three continuation bytes. */
function withoutBrokenStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && start < bytes.length && (bytes[start]! & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}
