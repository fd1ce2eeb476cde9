/** What a test opens is closed with it, the newest first; what is opened outside a test, with the tests of the file. */
import { mkdtempSync, rmSync } from "node:fs";
import { Server as HttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";
import { afterAll, onTestFinished, TestRunner } from "vitest";
import { type DragomanServer, type ServeOptions, serve } from "../../src/index.ts";

export function closeLater(close: () => unknown): void {
  const register = TestRunner.getCurrentTest() === undefined ? afterAll : onTestFinished;
  register(async () => {
    await close();
  });
}

/** Serves agents on free ports, without a log, and without waiting for running tasks when it is closed. */
export async function startServer(options: ServeOptions): Promise<DragomanServer> {
  const server = await serve({ port: 0, log: false, ...options, times: { drainMs: 0, ...options.times } });
  closeLater(() => server.close());
  return server;
}

export function createFolder(parent = tmpdir()): string {
  const folder = mkdtempSync(join(parent, "dragoman-test-"));
  closeLater(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Listens on a free port of the loopback address, and returns the port. */
export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closeLater(() => {
    if (server instanceof HttpServer) server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

export function listenGrpc(server: GrpcServer): Promise<number> {
  closeLater(() => server.forceShutdown());
  return new Promise((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    );
  });
}

/** A port that is free, below those that the system gives out: no one else gets it before it is used. */
export async function freePort(): Promise<number> {
  const port = 20_000 + Math.floor(Math.random() * 12_000);
  const server = createServer();
  const isFree = await new Promise<boolean>((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
  return isFree ? port : freePort();
}
