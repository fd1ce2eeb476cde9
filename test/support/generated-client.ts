/** A gRPC client generated from the published `.proto` files, with none of our code. */
import { fileURLToPath } from "node:url";
import { type Client, credentials, loadPackageDefinition, Metadata, type ServiceError } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { closeLater } from "./lifecycle.ts";

export type Plain = Record<string, unknown>;
type Entries = Readonly<Record<string, string>>;
type Unary = (request: Plain, metadata: Metadata, done: (error: ServiceError | null, reply: Plain) => void) => void;
type Stream = AsyncIterable<Plain> & { cancel(): void };
type Streaming = (request: Plain, metadata: Metadata) => Stream;
type Service = Client & Record<string, unknown>;

const PROTOS = fileURLToPath(new URL("../../proto", import.meta.url));
const OPTIONS = { includeDirs: [PROTOS], enums: String, bytes: String, oneofs: true, defaults: false };

export class GeneratedClient {
  readonly #client: Service;

  /** `file` is the path of the `.proto` file, which is also that of its package. */
  constructor(address: string, file: "lf/a2a/v1/a2a.proto" | "a2a/v1/a2a.proto") {
    let found: unknown = loadPackageDefinition(loadSync(file, OPTIONS));
    for (const step of [...file.split("/").slice(0, -1), "A2AService"]) found = (found as Plain)[step];
    const Made = found as new (address: string, how: ReturnType<typeof credentials.createInsecure>) => Service;
    this.#client = new Made(address, credentials.createInsecure());
    closeLater(() => this.#client.close());
  }

  /** Rejects with a ServiceError. */
  ask(method: string, request: Plain, entries: Entries = {}): Promise<Plain> {
    return new Promise((resolve, reject) => {
      (this.#client[method] as Unary).call(this.#client, request, toMetadata(entries), (error, reply) =>
        error === null ? resolve(reply) : reject(error),
      );
    });
  }

  stream(method: string, request: Plain, entries: Entries = {}): Stream {
    return (this.#client[method] as Streaming).call(this.#client, request, toMetadata(entries));
  }
}

function toMetadata(entries: Entries): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(entries)) metadata.set(name, value);
  return metadata;
}
