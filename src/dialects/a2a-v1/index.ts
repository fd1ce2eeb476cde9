import type { Dialect } from "../contract.ts";
import { grpc } from "./bind-grpc.ts";
import { http } from "./bind-http.ts";
import { jsonRpc } from "./bind-json-rpc.ts";
import { A2A_V1_CALLING } from "./call-bindings.ts";
import { readCard } from "./call-card.ts";
import { can } from "./can.ts";
import { interfaces, toCardDocument } from "./card.ts";
import { DIALECT_NAME } from "./invoke.ts";
import { push } from "./push.ts";
import { VERSION } from "./service-parameters.ts";

/** A2A 1.0 over JSON-RPC, HTTP+JSON and gRPC. */
export const a2aV1: Dialect = {
  name: DIALECT_NAME,
  can,
  losses: [],
  serving: {
    cards: [{ path: "/.well-known/agent-card.json", version: VERSION, document: toCardDocument }],
    interfaces,
    jsonRpc,
    http: [http],
    rpc: grpc,
    push,
  },
  calling: A2A_V1_CALLING,
  readCard,
};
