import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, it } from "vitest";
import { Connection } from "./connection.ts";

const ignoringSink = { body: () => {}, end: () => {} };

it("fails what was asked of a server that closes, and what is asked later", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection");
  const connection = await Connection.open((server.address() as AddressInfo).port);
  const [socket] = (await accepted) as [Socket];
  const first = connection.exchange(Buffer.from("GET / HTTP/1.1\r\n\r\n"), ignoringSink);
  socket.destroy();
  await expect(first).rejects.toThrow();
  await expect(connection.exchange(Buffer.from("GET / HTTP/1.1\r\n\r\n"), ignoringSink)).rejects.toThrow();
  server.close();
});
