/** Where a browser brings the answer of an authorization server: RFC 8252, section 7.3. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { LoginError } from "../errors.ts";

export interface Loopback {
  readonly redirectUri: string;
  /** The address the browser came back to, with what the server added to it. */
  readonly answer: Promise<URL>;
  close(): Promise<void>;
}

export interface LoopbackOptions {
  /** Known only to the server that was asked: whoever comes without it is someone else, and is not listened to. */
  readonly state: string;
  /** For servers that only redirect to an address they know; any free one otherwise. */
  readonly port?: number | undefined;
  readonly signal: AbortSignal;
}

const HOST = "127.0.0.1";
const PATH = "/callback";

export async function listenOnLoopback({ port = 0, signal, state }: LoopbackOptions): Promise<Loopback> {
  let arrive: (url: URL) => void = () => {};
  let giveUp: (error: Error) => void = () => {};
  const answer = new Promise<URL>((resolve, reject) => {
    arrive = resolve;
    giveUp = reject;
  });
  // Whoever waits for it may not have begun to when it is given up.
  answer.catch(() => {});
  const server = createServer((request, response) => {
    const base = `http://${HOST}:${(server.address() as AddressInfo).port}`;
    const url = new URL(URL.canParse(request.url ?? "", base) ? (request.url ?? "") : "/", base);
    if (request.method !== "GET" || url.pathname !== PATH) return say(response, 404, "There is nothing here.");
    if (url.searchParams.get("state") !== state) return say(response, 400, "This is not the login that was begun.");
    const failed = url.searchParams.has("error");
    say(response, 200, failed ? "The login was refused." : "You are logged in. You can close this window.");
    arrive(url);
  });
  const onAbort = (): void => giveUp(new LoginError("aborted", "The login was given up before it was complete."));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => {
      reject(new LoginError("unavailable", `No answer can be waited for on port ${port}.`, { cause: error }));
    });
    server.listen(port, HOST, resolve);
  });
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return {
    redirectUri: `http://${HOST}:${(server.address() as AddressInfo).port}${PATH}`,
    answer,
    async close() {
      signal.removeEventListener("abort", onAbort);
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      });
    },
  };
}

/** The connection ends with the answer, so that an idle browser does not keep the listener open. */
function say(response: ServerResponse, status: number, text: string): void {
  response
    .writeHead(status, {
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      connection: "close",
    })
    .end(`${text}\n`);
}
