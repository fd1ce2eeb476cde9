import { Server, ServerCredentials } from "@grpc/grpc-js";
import { runContestant } from "./child.ts";

/** The baseline for gRPC: only the library that all contestants use, which receives bytes and returns them. */
await runContestant(async () => {
  const server = new Server();
  const bytes = { serialize: (message: Buffer) => message, deserialize: (message: Buffer) => message };
  server.addService(
    {
      SendMessage: {
        path: "/lf.a2a.v1.A2AService/SendMessage",
        requestStream: false,
        responseStream: false,
        requestSerialize: bytes.serialize,
        requestDeserialize: bytes.deserialize,
        responseSerialize: bytes.serialize,
        responseDeserialize: bytes.deserialize,
      },
    },
    {
      SendMessage: (call: { request: Buffer }, answer: (error: null, message: Buffer) => void) =>
        answer(null, call.request),
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, path: "/", grpcPort: port, close: () => server.forceShutdown() };
});
