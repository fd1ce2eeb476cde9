import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Target } from "./attack.ts";

/** Opens connections, as far as the server takes them; those that failed are left out. */
export async function openSockets(port: number, count: number): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  const one = () =>
    new Promise<void>((resolve) => {
      const socket = connect(port, "127.0.0.1");
      socket.setMaxListeners(0).on("error", () => resolve());
      socket.once("connect", () => {
        sockets.push(socket);
        resolve();
      });
    });
  for (let opened = 0; opened < count; opened += 100) {
    await Promise.all(Array.from({ length: Math.min(100, count - opened) }, one));
  }
  return sockets;
}

/** Returns false if the connection is closed. Waits while the server does not read, at most a second. */
export async function send(target: Target, socket: Socket, bytes: Buffer | string): Promise<boolean> {
  if (socket.destroyed || !socket.writable) return false;
  target.sent(bytes.length);
  if (socket.write(bytes)) return true;
  await Promise.race([
    new Promise((resolve) => socket.once("drain", resolve).once("close", resolve)),
    delay(1_000, undefined, { ref: false }),
  ]);
  return !socket.destroyed;
}

/** Sends a request, and waits until some of the answer has come. Returns false if the connection is closed. */
export async function ask(target: Target, socket: Socket, request: string): Promise<boolean> {
  let settle = () => {};
  const answered = new Promise<void>((resolve) => {
    settle = resolve;
    socket.once("data", settle).once("close", settle);
  });
  const isSent = await send(target, socket, request);
  if (isSent) await answered;
  socket.off("data", settle).off("close", settle);
  return isSent;
}

/** Whether the time of the attack is over, counted from now. */
export function deadline({ seconds }: Target): () => boolean {
  const end = performance.now() + seconds * 1_000;
  return () => performance.now() > end;
}

/** Keeps what is open until the time of the attack is over. */
export async function hold(isOver: () => boolean): Promise<void> {
  while (!isOver()) await delay(100);
}
