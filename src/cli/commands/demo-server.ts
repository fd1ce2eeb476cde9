import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Output } from "../output.ts";
import { readOverrides, runServer, type ServeFlags } from "./serve.ts";

/** The built-in agents, kept in memory: something to practise on that leaves nothing behind. */
const CONFIG = `store: "memory:"
default: echo
agents:
  echo: { use: echo }
  outline: { use: outline }
  document: { use: document }
  summary: { use: summary }
`;

export async function demoServer(output: Output, flags: ServeFlags): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "dragoman-demo-"));
  try {
    const configFile = join(folder, "dragoman.yaml");
    await writeFile(configFile, CONFIG);
    const overrides = readOverrides(flags, output);
    try {
      await runServer(output, { configFile, overrides });
    } catch (error) {
      if (flags.port !== undefined || !isPortTaken(error)) throw error;
      output.talk("The usual port is taken; using a free one.");
      await runServer(output, { configFile, overrides: { ...overrides, port: 0 } });
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function isPortTaken(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EADDRINUSE";
}
