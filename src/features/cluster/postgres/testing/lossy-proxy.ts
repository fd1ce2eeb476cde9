import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** Between a store and its server: loses the connection with the answer to a statement, or with the statement itself. */
export interface LossyProxy {
  readonly port: number;
  /** Of the next statement that contains the text. Resolves when it is lost. */
  lose(what: "answer" | "statement", text: string): Promise<void>;
  close(): Promise<void>;
}

interface Loss {
  readonly what: "answer" | "statement";
  readonly text: string;
  readonly done: () => void;
}

export async function startLossyProxy(serverPort: number): Promise<LossyProxy> {
  const sockets = new Set<Socket>();
  let loss: Loss | undefined;

  const proxy = createServer((client) => {
    const server = connect(serverPort, "127.0.0.1");
    let lost: Loss | undefined;
    const end = () => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", end);
      socket.on("close", end);
      socket.on("close", () => sockets.delete(socket));
    }
    client.on("data", (data: Buffer) => {
      if (loss !== undefined && data.includes(loss.text)) {
        lost = loss;
        loss = undefined;
      }
      if (lost?.what !== "statement") {
        server.write(data);
        return;
      }
      end();
      lost.done();
    });
    server.on("data", (data: Buffer) => {
      if (lost === undefined) {
        client.write(data);
        return;
      }
      // PostgreSQL answers once the statement is committed.
      end();
      lost.done();
    });
  });
  await new Promise<void>((resolve) => {
    proxy.listen(0, "127.0.0.1", resolve);
  });

  return {
    port: (proxy.address() as AddressInfo).port,
    lose: (what, text) =>
      new Promise((resolve) => {
        loss = { what, text, done: resolve };
      }),
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        proxy.close(() => resolve());
      }),
  };
}
