import type { Dialect } from "../contract.ts";
import { abilitiesWithout } from "../shared/abilities.ts";
import { grpc } from "./bind-grpc.ts";
import { http, httpExtendedCard } from "./bind-http.ts";
import { jsonRpc } from "./bind-json-rpc.ts";
import { grpcCalling } from "./call-grpc.ts";
import { httpCalling } from "./call-http.ts";
import { jsonRpcCalling } from "./call-json-rpc.ts";
import { DIALECT_NAME } from "./invoke.ts";
import { interfaces, readCard, toCardDocument, toLegacyCardDocument } from "./json/card.ts";
import { push } from "./json/encode.ts";
import { LOSSES, PROTO_LOSSES } from "./losses.ts";
import { VERSION } from "./service-parameters.ts";

/** Tasks cannot be listed; everything else of 1.0 can be expressed, if necessary in metadata. */
const can = abilitiesWithout("list");

/** A2A 0.3 over JSON-RPC, HTTP+JSON and gRPC; also supports 0.2. */
export const a2aV03: Dialect = {
  name: DIALECT_NAME,
  can,
  losses: [...Object.values(LOSSES), ...Object.values(PROTO_LOSSES)],
  serving: {
    cards: [
      { path: "/.well-known/agent-card.json", version: VERSION, document: toCardDocument },
      { path: "/.well-known/agent.json", version: "0.2", document: toLegacyCardDocument },
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
