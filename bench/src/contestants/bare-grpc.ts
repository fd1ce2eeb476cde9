import { Server, ServerCredentials, type ServerWritableStream } from "@grpc/grpc-js";
import { runContestant } from "./child.ts";
import { chunkText, requestedChunks } from "./protocol.ts";

/**
 * The baseline for gRPC: only the library that all contestants use. A send returns the bytes it received; a stream writes
 * messages of the length that an artifact update has.
 */
const bytes = (message: Buffer) => message;
const update = Buffer.from(chunkText + " ".repeat(140));

function method(name: string, responseStream: boolean) {
  return {
    path: `/lf.a2a.v1.A2AService/${name}`,
    requestStream: false,
    responseStream,
    requestSerialize: bytes,
    requestDeserialize: bytes,
    responseSerialize: bytes,
    responseDeserialize: bytes,
  };
}

await runContestant(async () => {
  const server = new Server();
  server.addService(
    { SendMessage: method("SendMessage", false), SendStreamingMessage: method("SendStreamingMessage", true) },
    {
      SendMessage: (call: { request: Buffer }, answer: (error: null, message: Buffer) => void) =>
        answer(null, call.request),
      SendStreamingMessage: (call: ServerWritableStream<Buffer, Buffer>) => {
        // The text is the last field of the request.
        const { count } = requestedChunks(/\d+ \d+$/.exec(call.request.toString("latin1"))?.[0] ?? "");
        for (let chunk = 0; chunk < count; chunk++) call.write(update);
        call.end();
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, path: "/", grpcPort: port, close: () => server.forceShutdown() };
});
