import type { Abilities, Dialect } from "../contract.ts";
import { grpc } from "./bind-grpc.ts";
import { http } from "./bind-http.ts";
import { jsonRpc } from "./bind-json-rpc.ts";
import { grpcCalling } from "./call-grpc.ts";
import { httpCalling } from "./call-http.ts";
import { jsonRpcCalling } from "./call-json-rpc.ts";
import { interfaces, readCard, toCardDocument } from "./card.ts";
import { push } from "./encode.ts";
import { DIALECT_NAME } from "./invoke.ts";
import { VERSION } from "./service-parameters.ts";

/** The model is that of this dialect, so it can express everything. */
export const can: Abilities = {
  streaming: true,
  replay: true,
  operations: {
    send: true,
    stream: true,
    get: true,
    list: true,
    cancel: true,
    subscribe: true,
    "push-create": true,
    "push-get": true,
    "push-list": true,
    "push-delete": true,
    "extended-card": true,
  },
  parts: { text: true, raw: true, url: true, data: true },
  artifacts: true,
  inputRequired: true,
  metadata: true,
};

/** The bindings over which A2A 1.0 agents can be called. */
const A2A_V1_CALLING = [jsonRpcCalling, httpCalling, grpcCalling] as const;

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
