import { grpcCalling } from "./call-grpc.ts";
import { httpCalling } from "./call-http.ts";
import { jsonRpcCalling } from "./call-json-rpc.ts";

/** The bindings in which agents of A2A 1.0 can be called. */
export const A2A_V1_CALLING = [jsonRpcCalling, httpCalling, grpcCalling] as const;
