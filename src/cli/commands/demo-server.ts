import { BUILTIN_AGENTS } from "../../agents/builtin.ts";
import { type DragomanServer, serve } from "../../server/serve.ts";
import type { Output } from "../output.ts";
import { readAddress, runUntilStopped } from "./serve.ts";

export interface DemoServerFlags {
  readonly port?: string;
}

/** Serves the built-in agents from memory, for trying things out without leaving files behind. */
export async function demoServer(output: Output, flags: DemoServerFlags): Promise<void> {
  await runUntilStopped(output, await start(output, flags));
}

async function start(output: Output, flags: DemoServerFlags): Promise<DragomanServer> {
  const agents = Object.fromEntries(Object.entries(BUILTIN_AGENTS).map(([name, create]) => [name, create()]));
  // Webhooks of its users are on this machine, the only one from which this server can be called.
  const push = { allowPrivateTargets: true };
  const options = { agents, default: "echo", store: "memory:", push, log: false as const, ...readAddress(flags) };
  try {
    return await serve(options);
  } catch (error) {
    const taken = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
    if (!taken || flags.port !== undefined) throw error;
    output.info("The usual port is taken; using a free one.");
    return serve({ ...options, port: 0, grpcPort: 0 });
  }
}
