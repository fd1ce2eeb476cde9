import type { Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";

/** Any free port; the address to call it at. */
export function listening(server: HttpServer): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  });
}

export function bindGrpc(server: GrpcServer): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve(port);
      else reject(error);
    });
  });
}

export async function closeAll(http: HttpServer, grpc: GrpcServer): Promise<void> {
  grpc.forceShutdown();
  const closed = new Promise<void>((resolve) => http.close(() => resolve()));
  http.closeAllConnections();
  await closed;
}
