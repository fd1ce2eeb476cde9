import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Target } from "./attack.ts";

/** A distributed attack: all of 127.0.0.0/8 is this machine. */
export function sourceAddress(index: number): string {
  return `127.0.1.${1 + (index % 250)}`;
}

/**
 * Opens connections, as far as the server takes them; those that failed are left out. `isDistributed`: from many
 * addresses.
 */
export async function openSockets(port: number, count: number, isDistributed = false): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  let index = 0;
  const one = () =>
    new Promise<void>((resolve) => {
      const from = isDistributed ? { localAddress: sourceAddress(index++) } : {};
      const socket = connect({ port, host: "127.0.0.1", ...from });
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

/** Waits until the server closes a connection, at most until the time of the attack is over. */
export async function closed({ seconds }: Target, socket: Socket): Promise<void> {
  if (socket.destroyed) return;
  const timer = setTimeout(() => socket.destroy(), Math.max(0, seconds * 1_000 - performance.now()));
  await new Promise((resolve) => socket.resume().once("close", resolve));
  clearTimeout(timer);
}

/** Keeps what is open until the time of the attack is over. */
export async function hold(isOver: () => boolean): Promise<void> {
  while (!isOver()) await delay(100);
}
