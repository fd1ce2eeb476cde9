/** All rows of the table, by dialect and binding. */
import type { DragomanServer } from "../../src/server/serve.ts";
import { GrpcAsker } from "./ask-grpc.ts";
import type { Row } from "./ask-http.ts";
import * as v1 from "./bindings/a2a-v1.ts";
import * as v03 from "./bindings/a2a-v03.ts";
import { tasksRestRows, v01Rows } from "./bindings/legacy.ts";

export class Rows {
  readonly #server: DragomanServer;
  readonly #askers: GrpcAsker[] = [];

  constructor(server: DragomanServer) {
    this.#server = server;
  }

  of(dialect: Dialect): readonly Row[] {
    return ROWS[dialect](this.#server.url, (file, entries) => this.#grpc(file, entries));
  }

  close(): void {
    for (const asker of this.#askers) asker.close();
  }

  #grpc(file: string, entries: Readonly<Record<string, string>> = {}): GrpcAsker {
    const asker = new GrpcAsker(this.#server.grpc ?? "", file, entries);
    this.#askers.push(asker);
    return asker;
  }
}

type Grpc = (file: string, entries?: Readonly<Record<string, string>>) => GrpcAsker;

const ROWS = {
  "1.0 over JSON-RPC": (url) => v1.jsonRpcRows(url),
  "1.0 over HTTP+JSON": (url) => v1.httpRows(url),
  "1.0 over gRPC": (_, grpc) => v1.grpcRows(grpc("lf/a2a/v1/a2a.proto", { "a2a-version": "1.0" })),
  "0.3 over JSON-RPC": (url) => v03.jsonRpcRows(url),
  "0.3 over HTTP+JSON, and 0.2": (url) => v03.httpRows(url),
  "0.3 over gRPC": (_, grpc) => v03.grpcRows(grpc("a2a/v1/a2a.proto")),
  "0.1": (url) => v01Rows(url),
  "tasks-rest": (url) => tasksRestRows(url),
} as const satisfies Readonly<Record<string, (url: string, grpc: Grpc) => readonly Row[]>>;

export type Dialect = keyof typeof ROWS;

export const DIALECTS = Object.keys(ROWS) as readonly Dialect[];
