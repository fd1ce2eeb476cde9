/** Bytes over a plain socket, for what no HTTP client would send. */
import { connect, type Socket } from "node:net";
import { closeLater } from "./lifecycle.ts";

export function openSocket(port: number, host = "127.0.0.1"): Socket {
  const socket = connect(port, host).on("error", () => {});
  closeLater(() => socket.destroy());
  return socket;
}

/** What the server sends until it hangs up, or until that is enough. */
export function readSocket(socket: Socket, isEnough: (text: string) => boolean = () => false): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (isEnough(text)) resolve(text);
    });
    socket.on("close", () => resolve(text));
  });
}

/** Writes the bytes and reads until the server hangs up. */
export function exchangeBytes(port: number, bytes: string | Uint8Array, host?: string): Promise<string> {
  const socket = openSocket(port, host);
  socket.write(bytes);
  return readSocket(socket);
}

/** Sends the head of a request and some of its body; the answer is complete with its head. */
export function beginRequest(port: number, path: string, headers: readonly string[], some: string) {
  const socket = openSocket(port);
  const lines = [`POST ${path} HTTP/1.1`, "host: 127.0.0.1", "content-type: application/json", ...headers];
  socket.write(`${lines.join("\r\n")}\r\n\r\n${some}`);
  return { socket, answer: readSocket(socket, (text) => text.includes("\r\n\r\n")) };
}
