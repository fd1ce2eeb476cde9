import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";

/** A client of IRC that knows lines only. */
export interface RawIrc {
  /** All lines received so far, without those that keep the connection alive. */
  readonly lines: readonly string[];
  send(line: string): void;
  /** The next line that matches, among those that no earlier call has passed. */
  next(matches: RegExp): Promise<string>;
  close(): void;
}

interface RawIrcOptions {
  readonly nick: string;
  readonly channel?: string;
  readonly onLine?: (line: string) => void;
}

/** Connected, and in the channel. */
export async function openRawIrc(port: number, { channel, nick, onLine }: RawIrcOptions): Promise<RawIrc> {
  const socket: Socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.on("error", () => {});
  const lines: string[] = [];
  let at = 0;
  let wake = (): void => {};
  createInterface({ input: socket }).on("line", (line) => {
    if (line.startsWith("PING")) socket.write(`PONG${line.slice(4)}\r\n`);
    else {
      lines.push(line);
      onLine?.(line);
    }
    wake();
  });
  const client: RawIrc = {
    lines,
    send: (line) => void socket.write(`${line}\r\n`),
    async next(matches) {
      for (;;) {
        const found = lines.findIndex((line, index) => index >= at && matches.test(line));
        if (found >= 0) {
          at = found + 1;
          return lines[found] as string;
        }
        if (socket.destroyed) throw new Error(`The connection closed; received: ${lines.join("\n")}`);
        await new Promise<void>((resolve) => {
          wake = resolve;
          socket.once("close", resolve);
        });
      }
    },
    close: () => void socket.destroy(),
  };
  client.send(`NICK ${nick}`);
  client.send(`USER ${nick} 0 * :${nick}`);
  await client.next(/^\S+ 001 /);
  if (channel !== undefined) {
    client.send(`JOIN ${channel}`);
    await client.next(/^\S+ 366 /);
  }
  return client;
}
