import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { quoteForShell } from "../../src/core/cli/render/text.ts";
import { CLI, cleanEnvironment, requireBuild } from "./cli.ts";

/** The command line on a pseudo-terminal: both of its sides are the terminal, as they are for a person. */
export interface Terminal {
  /** Resolves when something that matches has been written, wherever it may be overwritten later. */
  shows(pattern: RegExp): Promise<void>;
  /** Presses keys. */
  type(keys: string): void;
  /** How it ended, all that was written to the terminal, and what is left on the screen. */
  readonly ended: Promise<{
    readonly code: number | null;
    readonly written: string;
    readonly screen: readonly string[];
  }>;
  kill(): void;
}

/** `script` is part of bsdutils on Linux, and so of every Debian. */
export function openTerminal(words: readonly string[], columns: number, script = CLI): Terminal {
  if (script === CLI) requireBuild();
  const program = [process.execPath, script, ...words].map(quoteForShell).join(" ");
  const command = `stty cols ${columns} rows 24; exec ${program}`;
  const child: ChildProcessWithoutNullStreams = spawn("script", ["-qefc", command, "/dev/null"], {
    env: cleanEnvironment({ SHELL: "/bin/sh", TERM: "xterm" }),
  });
  let written = "";
  const watchers = new Set<() => void>();
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    written += text;
    for (const look of watchers) look();
  });
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return {
    shows: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (!pattern.test(written)) return;
          watchers.delete(look);
          resolve();
        };
        watchers.add(look);
        void closed.then(() => reject(new Error(`It ended without ${pattern}: ${written}`)));
        look();
      }),
    type: (keys) => void child.stdin.write(keys),
    ended: closed.then((code) => ({ code, written, screen: screenOf(written, columns) })),
    kill: () => child.kill(),
  };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal acts on
const TOKEN = /\u001b\[([\d;]*)([A-Za-z])|./gsu;

/** The rows a terminal shows after all of it; wide characters take two columns, and what is too long wraps. */
function screenOf(written: string, columns: number): readonly string[] {
  const rows: string[][] = [[]];
  let column = 0;
  const row = (): string[] => rows.at(-1) ?? [];
  for (const [token, , final] of written.matchAll(TOKEN)) {
    if (token === "\r") column = 0;
    else if (token === "\n") rows.push([]);
    else if (final === "K") row().splice(column);
    else if (final === "A" && rows.length > 1) rows.pop();
    else if (final === undefined) {
      const width = /[\u1100-\u115f\u2e80-\uffdc]/.test(token) ? 2 : 1;
      if (column + width > columns) {
        rows.push([]);
        column = 0;
      }
      while (row().length < column) row().push(" ");
      row().splice(column, width, token, ...(width === 2 ? [""] : []));
      column += width;
    }
  }
  return rows.map((cells) => cells.join(""));
}
