import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Hit {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface CountingServer {
  readonly port: number;
  /** Connections, whether or not anything was asked on them. */
  connections: number;
  readonly hits: Hit[];
  close(): Promise<void>;
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A server on every address of this machine, which knows whether it was reached. */
export async function startCountingServer(answer: Answer = (_, response) => response.end("inside")) {
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      const { method = "", url = "", headers, socket } = request;
      counting.hits.push({ method, path: url, host: socket.localAddress ?? "", headers, body });
      answer(request, response);
    });
  });
  server.on("connection", () => {
    counting.connections++;
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "::", resolve);
  });
  const counting: CountingServer = {
    port: (server.address() as AddressInfo).port,
    connections: 0,
    hits: [],
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return counting;
}
