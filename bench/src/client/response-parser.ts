/** Receives one HTTP response. `body` gets a range of a buffer, which only the reader itself reuses after the call. */
export interface ResponseSink {
  body(data: Buffer, start: number, end: number): void;
  end(status: number): void;
}

type State = "head" | "fixed" | "chunk-size" | "chunk-data" | "chunk-end" | "trailer";

const headEnd = Buffer.from("\r\n\r\n");
const lineEnd = Buffer.from("\r\n");

/**
 * Parses the HTTP/1.1 responses of one connection. It supports only what the measured servers send
 * (a content length or chunks), so that the client stays far cheaper than they are.
 */
export class ResponseParser {
  #state: State = "head";
  #pending: Buffer | undefined;
  #remaining = 0;
  #status = 0;

  push(chunk: Buffer, sink: ResponseSink): void {
    const data = this.#pending ? Buffer.concat([this.#pending, chunk]) : chunk;
    this.#pending = undefined;
    let at = 0;
    while (at < data.length) {
      const next = this.#step(data, at, sink);
      if (next === at) {
        this.#pending = data.subarray(at);
        return;
      }
      at = next;
    }
  }

  /** Consumes one element at `at` and returns the offset of the next; `at` itself if more bytes are needed. */
  #step(data: Buffer, at: number, sink: ResponseSink): number {
    switch (this.#state) {
      case "head":
        return this.#head(data, at, sink);
      case "fixed":
      case "chunk-data": {
        const end = Math.min(data.length, at + this.#remaining);
        this.#remaining -= end - at;
        sink.body(data, at, end);
        if (this.#remaining === 0) {
          if (this.#state === "fixed") this.#finish(sink);
          else this.#state = "chunk-end";
        }
        return end;
      }
      case "chunk-end":
        if (data.length - at < 2) return at;
        this.#state = "chunk-size";
        return at + 2;
      case "chunk-size": {
        const end = data.indexOf(lineEnd, at);
        if (end < 0) return at;
        this.#remaining = Number.parseInt(data.toString("latin1", at, end), 16);
        this.#state = this.#remaining === 0 ? "trailer" : "chunk-data";
        return end + 2;
      }
      case "trailer": {
        const end = data.indexOf(lineEnd, at);
        if (end < 0) return at;
        if (end === at) this.#finish(sink);
        return end + 2;
      }
    }
  }

  #head(data: Buffer, at: number, sink: ResponseSink): number {
    const end = data.indexOf(headEnd, at);
    if (end < 0) return at;
    const head = data.toString("latin1", at, end);
    this.#status = Number(head.slice(9, 12));
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length !== undefined) {
      this.#remaining = Number(length);
      this.#state = "fixed";
      if (this.#remaining === 0) this.#finish(sink);
    } else if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
      this.#state = "chunk-size";
    } else {
      throw new Error(`response without a length:\n${head}`);
    }
    return end + headEnd.length;
  }

  #finish(sink: ResponseSink): void {
    this.#state = "head";
    sink.end(this.#status);
  }
}
