/** A gRPC server for tests that accepts any method of one service and responds with the bytes a test provides. */
import {
  type Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
} from "@grpc/grpc-js";

type Unary = (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => void;
type Streaming = (call: ServerWritableStream<Buffer, Buffer>) => void | Promise<void>;

interface GrpcTestServer extends AsyncDisposable {
  readonly port: number;
  readonly authority: string;
  /** Methods that were called, in order, with their metadata. */
  readonly calls: { readonly method: string; readonly metadata: Metadata; readonly message: Buffer }[];
}

interface GrpcMethods {
  readonly unary?: Readonly<Record<string, Unary>>;
  readonly streaming?: Readonly<Record<string, Streaming>>;
}

const same = (bytes: Buffer): Buffer => bytes;

export async function startGrpcServer(service: string, methods: GrpcMethods, port = 0): Promise<GrpcTestServer> {
  const server = new Server({ "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 });
  const calls: GrpcTestServer["calls"] = [];
  const define = (method: string, responseStream: boolean) => ({
    path: `/${service}/${method}`,
    requestStream: false,
    responseStream,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  });
  for (const [method, handle] of Object.entries(methods.unary ?? {})) {
    server.addService(
      { [method]: define(method, false) },
      {
        [method]: (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => {
          calls.push({ method, metadata: call.metadata, message: call.request });
          handle(call, answer);
        },
      },
    );
  }
  for (const [method, handle] of Object.entries(methods.streaming ?? {})) {
    server.addService(
      { [method]: define(method, true) },
      {
        [method]: (call: ServerWritableStream<Buffer, Buffer>) => {
          calls.push({ method, metadata: call.metadata, message: call.request });
          void handle(call);
        },
      },
    );
  }
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, given) =>
      error === null ? resolve(given) : reject(error),
    );
  });
  return {
    port: bound,
    authority: `127.0.0.1:${bound}`,
    calls,
    async [Symbol.asyncDispose]() {
      server.forceShutdown();
    },
  };
}
