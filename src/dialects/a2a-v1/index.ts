import type { Dialect } from "../contract.ts";
import { http } from "./bind-http.ts";
import { jsonRpc } from "./bind-json-rpc.ts";
import { A2A_V1_CALLING } from "./call-bindings.ts";
import { can } from "./can.ts";
import { toWireCard } from "./card.ts";
import { DIALECT_NAME } from "./invoke.ts";
import { VERSION } from "./service-parameters.ts";

/** A2A 1.0 over JSON-RPC and HTTP+JSON. */
export const a2aV1: Dialect = {
  name: DIALECT_NAME,
  can,
  serving: {
    card: { path: "/.well-known/agent-card.json", contentType: "application/json", encode: toWireCard },
    interfaces: (base) => [
      { url: base, protocolBinding: "JSONRPC", protocolVersion: VERSION },
      { url: `${base}/${http.prefix}`, protocolBinding: "HTTP+JSON", protocolVersion: VERSION },
    ],
    jsonRpc,
    http,
  },
  calling: A2A_V1_CALLING,
};
