import { connect, type Socket } from "node:net";
import { ResponseParser, type ResponseSink } from "./response-parser.ts";

/** One keep-alive connection with one request in flight at a time. */
export class Connection {
  readonly #socket: Socket;
  readonly #parser = new ResponseParser();
  #sink: ResponseSink | undefined;
  #done: ((status: number) => void) | undefined;
  #fail: ((error: Error) => void) | undefined;
  #error: Error | undefined;
  readonly #relay: ResponseSink = {
    body: (data, start, end) => this.#sink?.body(data, start, end),
    end: (status) => {
      const done = this.#done;
      this.#sink?.end(status);
      this.#sink = this.#done = this.#fail = undefined;
      done?.(status);
    },
  };

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => {
      try {
        this.#parser.push(chunk, this.#relay);
      } catch (error) {
        this.#broken(error instanceof Error ? error : new Error(String(error)));
      }
    });
    socket.on("error", (error) => this.#broken(error));
    socket.on("close", () => this.#broken(new Error("the server closed the connection")));
  }

  static open(port: number): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new Connection(socket));
      });
    });
  }

  /** Sends a whole request; resolves with the status once the sink has received the whole response. */
  exchange(request: Buffer, sink: ResponseSink): Promise<number> {
    // A closed socket does not report what happens to further writes.
    if (this.#error !== undefined) return Promise.reject(this.#error);
    return new Promise((resolve, reject) => {
      this.#sink = sink;
      this.#done = resolve;
      this.#fail = reject;
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#fail = undefined;
    this.#socket.destroy();
  }

  #broken(error: Error): void {
    const fail = this.#fail;
    this.#error ??= error;
    this.#fail = undefined;
    fail?.(error);
  }
}
