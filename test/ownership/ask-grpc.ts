import { fileURLToPath } from "node:url";
import { type Client, credentials, loadPackageDefinition, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import type { Answer } from "./ask-http.ts";

type Plain = Record<string, unknown>;
type Unary = (request: Plain, metadata: Metadata, done: (error: ServiceError | null, reply: Plain) => void) => void;
type Stream = AsyncIterable<Plain> & { cancel(): void };
type Streaming = (request: Plain, metadata: Metadata) => Stream;
type Service = Client & Record<string, unknown>;

const PROTOS = fileURLToPath(new URL("../../proto", import.meta.url));
const OPTIONS = { includeDirs: [PROTOS], enums: String, bytes: String, oneofs: true, defaults: false };

/** Asks over gRPC with a client made of the published `.proto` files. */
export class GrpcAsker {
  readonly #client: Service;
  readonly #entries: Readonly<Record<string, string>>;

  constructor(address: string, file: string, entries: Readonly<Record<string, string>> = {}) {
    let found: unknown = loadPackageDefinition(loadSync(file, OPTIONS));
    const path = file.replace(/\/[^/]+$/, "").split("/");
    for (const step of [...path, "A2AService"]) found = (found as Plain)[step];
    const Made = found as new (address: string, how: ReturnType<typeof credentials.createInsecure>) => Service;
    this.#client = new Made(address, credentials.createInsecure());
    this.#entries = entries;
  }

  async ask(method: string, request: Plain, token: string | undefined, streams = false): Promise<Answer> {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(this.#entries)) metadata.set(name, value);
    if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
    try {
      const reply = streams
        ? await this.#first(method, request, metadata)
        : await this.#unary(method, request, metadata);
      return { brief: streams ? "OK stream" : "OK", text: JSON.stringify(reply) };
    } catch (error) {
      const { code, details, metadata: trailer } = error as ServiceError;
      const challenge = trailer.get("www-authenticate").length > 0 ? " +challenge" : "";
      return { brief: `${status[code]}${challenge}`, text: `${details} ${trailer.get("grpc-status-details-bin")}` };
    }
  }

  close(): void {
    this.#client.close();
  }

  #unary(method: string, request: Plain, metadata: Metadata): Promise<Plain> {
    return new Promise((resolve, reject) => {
      (this.#client[method] as Unary).call(this.#client, request, metadata, (error, reply) =>
        error === null ? resolve(reply) : reject(error),
      );
    });
  }

  async #first(method: string, request: Plain, metadata: Metadata): Promise<Plain> {
    const stream = (this.#client[method] as Streaming).call(this.#client, request, metadata);
    for await (const frame of stream) {
      stream.cancel();
      return frame;
    }
    throw new Error("The stream was empty.");
  }
}
