import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";

export interface ChildOptions {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Time between the polite and the final signal. */
  readonly graceMs: number;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** How much of stderr is kept. */
const MAX_STDERR_BYTES = 4_096;

const HAS_GROUPS = process.platform !== "win32";

/** Children die with this process even when it ends without waiting for them. */
const alive = new Set<Child>();
let watchesExit = false;

/** One process with its own group, so that what it started ends with it. */
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
    // A process need not read its input: a broken pipe says nothing about its result.
    child.stdin.on("error", () => {});
    this.exit = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        resolve({ code, signal });
        // What it left running may still write, but not for ever.
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

  /** Resolves when the process runs; rejects if it cannot be started. */
  static start({ command: [file, ...values], cwd, env, graceMs }: ChildOptions): Promise<Child> {
    return new Promise((resolve, reject) => {
      const child = spawn(file, values, { cwd, env, detached: HAS_GROUPS, stdio: "pipe", windowsHide: true });
      child.once("spawn", () => resolve(new Child(child, graceMs)));
      child.on("error", reject);
    });
  }

  /** The output, decoded; the process is held up while nobody reads it. */
  get stdout(): AsyncIterable<string> {
    return this.#process.stdout.setEncoding("utf8");
  }

  writeInput(input: string): void {
    this.#process.stdin.end(input);
  }

  /** It was asked to end, whatever its exit says. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Asks the whole group to end, and makes it end after the grace time. Harmless when it has. */
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

  /** The end of all that was written to stderr: valid UTF-8, no more than 4 KB. */
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
      // The group is gone already.
    }
  }
}

function lastCharacters(bytes: Buffer): string {
  // Bytes that are no text become longer when they are replaced, so the cut is made after that.
  const text = Buffer.from(withoutBrokenStart(bytes).toString("utf8"), "utf8");
  return withoutBrokenStart(text.subarray(-MAX_STDERR_BYTES)).toString("utf8");
}

/** A cut inside a character leaves up to three continuation bytes. */
function withoutBrokenStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && start < bytes.length && (bytes[start]! & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}
