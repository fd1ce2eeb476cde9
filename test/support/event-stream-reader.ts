/** Reads server-sent events off a response, independently of the product's own parser. */
import { StringDecoder } from "node:string_decoder";
import type { OpenReply } from "./raw-http.ts";

export interface EventFrame {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: string;
}

export class EventStreamReader {
  readonly reply: OpenReply;
  readonly comments: string[] = [];
  readonly #ready: EventFrame[] = [];
  readonly #decoder = new StringDecoder("utf8");
  #text = "";
  #ended = false;
  #cut = false;
  #notify = () => {};

  constructor(reply: OpenReply) {
    this.reply = reply;
    reply.response.on("data", (chunk: Buffer) => this.#take(this.#decoder.write(chunk)));
    reply.response.on("end", () => this.#finish());
    reply.response.on("error", () => {
      this.#cut = true;
      this.#finish();
    });
    reply.response.on("close", () => this.#finish());
  }

  /** The connection broke before the response was complete. */
  get cut(): boolean {
    return this.#cut;
  }

  /** The next event; undefined once the stream is over. */
  async next(): Promise<EventFrame | undefined> {
    while (this.#ready.length === 0 && !this.#ended) await this.#something();
    return this.#ready.shift();
  }

  /** Resolves when a comment has come. */
  async comment(): Promise<void> {
    const before = this.comments.length;
    while (this.comments.length === before && !this.#ended) await this.#something();
  }

  async rest(): Promise<EventFrame[]> {
    const frames: EventFrame[] = [];
    for (let frame = await this.next(); frame !== undefined; frame = await this.next()) frames.push(frame);
    return frames;
  }

  close(): void {
    this.reply.hangUp();
  }

  #something(): Promise<void> {
    return new Promise((resolve) => {
      this.#notify = resolve;
    });
  }

  #finish(): void {
    this.#ended = true;
    this.#notify();
  }

  #take(text: string): void {
    this.#text += text;
    let start = 0;
    for (let end = this.#text.indexOf("\n\n"); end >= 0; end = this.#text.indexOf("\n\n", start)) {
      this.#read(this.#text.slice(start, end));
      start = end + 2;
    }
    this.#text = this.#text.slice(start);
    this.#notify();
  }

  #read(block: string): void {
    let id: string | undefined;
    let event: string | undefined;
    const data: string[] = [];
    for (const line of block.split("\n")) {
      if (line.startsWith(":")) this.comments.push(line.slice(1).trim());
      else if (line.startsWith("id: ")) id = line.slice(4);
      else if (line.startsWith("event: ")) event = line.slice(7);
      else if (line.startsWith("data: ")) data.push(line.slice(6));
      else if (line !== "") throw new Error(`Not a line of an event stream: ${line}`);
    }
    if (data.length > 0) this.#ready.push({ id, event, data: data.join("\n") });
  }
}
