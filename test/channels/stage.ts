import type { Log } from "../../src/core/model/ports.ts";
import type { ChannelEntryOptions } from "../../src/features/chat/server/entries.ts";
import type { DragomanServer, ServeOptions } from "../../src/index.ts";
import { startServer } from "../support/lifecycle.ts";

/** Resolves when all its channels are connected. */
export async function startInRoom(
  options: ServeOptions & { readonly channels: readonly ChannelEntryOptions[] },
): Promise<DragomanServer> {
  let missing = options.channels.length;
  let done = (): void => {};
  const connected = new Promise<void>((resolve) => {
    done = resolve;
  });
  const ignore = (): void => {};
  const info = (_: object, message: string): void => {
    if (message.startsWith("Connected to ") && --missing === 0) done();
  };
  const log: Log = { debug: ignore, info, warn: ignore, error: ignore };
  const server = await startServer({ ...options, log });
  await connected;
  return server;
}
