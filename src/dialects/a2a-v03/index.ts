import type { Dialect } from "../contract.ts";
import { grpc } from "./bind-grpc.ts";
import { http } from "./bind-http.ts";
import { jsonRpc } from "./bind-json-rpc.ts";
import { readCard } from "./call-card.ts";
import { grpcCalling } from "./call-grpc.ts";
import { httpCalling } from "./call-http.ts";
import { jsonRpcCalling } from "./call-json-rpc.ts";
import { can } from "./can.ts";
import { interfaces, toCardDocument, toEarlierCardDocument } from "./card.ts";
import { httpExtendedCard } from "./http-extended-card.ts";
import { DIALECT_NAME } from "./invoke.ts";
import { LOSSES } from "./losses.ts";
import { PROTO_LOSSES } from "./losses-proto.ts";
import { push } from "./push.ts";
import { VERSION } from "./service-parameters.ts";

/** A2A 0.3 over JSON-RPC, HTTP+JSON and gRPC; reads and answers 0.2 as well. */
export const a2aV03: Dialect = {
  name: DIALECT_NAME,
  can,
  losses: [...Object.values(LOSSES), ...Object.values(PROTO_LOSSES)],
  serving: {
    cards: [
      { path: "/.well-known/agent-card.json", version: VERSION, document: toCardDocument },
      { path: "/.well-known/agent.json", version: "0.2", document: toEarlierCardDocument },
    ],
    interfaces,
    jsonRpc,
    http: [http, httpExtendedCard],
    rpc: grpc,
    push,
  },
  calling: [jsonRpcCalling, httpCalling, grpcCalling],
  readCard,
};
