/** A process that makes one unary and one streaming call over gRPC and then should exit. */

import { createGrpcCarrier } from "../grpc-carrier.ts";
import { parseGrpcAddress } from "../grpc-channels.ts";

const address = parseGrpcAddress(process.argv[2] ?? "", { tls: false });
if (address === undefined) throw new Error("An address is needed.");
const carrier = createGrpcCarrier();
const call = { service: "test.Service", method: "Echo", metadata: {}, message: Buffer.from("hello") };
const options = { signal: new AbortController().signal, silenceMs: 1_000 };
const { message } = await carrier.unary(address, call, options);
for await (const _batch of carrier.stream(address, { ...call, method: "Count" }, options).messages) break;
process.stdout.write(message);
