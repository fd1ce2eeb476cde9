import type { Dialect } from "../contract.ts";
import { abilitiesWithout } from "../shared/abilities.ts";
import { RESPONSE_LOSSES } from "../shared/responses.ts";
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
export const can = abilitiesWithout();

/** A2A 1.0 over JSON-RPC, HTTP+JSON and gRPC. */
export const a2aV1: Dialect = {
  name: DIALECT_NAME,
  can,
  losses: Object.values(RESPONSE_LOSSES),
  serving: {
    cards: [{ path: "/.well-known/agent-card.json", version: VERSION, document: toCardDocument }],
    interfaces,
    jsonRpc,
    http: [http],
    rpc: grpc,
    push,
  },
  calling: [jsonRpcCalling, httpCalling, grpcCalling],
  readCard,
};
