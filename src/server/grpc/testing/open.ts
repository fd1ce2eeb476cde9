import { afterEach } from "vitest";
import { createGrpcServer, type GrpcEndpoint } from "../node-grpc.ts";
import { type FakeOptions, fakeOptions } from "./fake-serving.ts";
import { RawClient } from "./raw-client.ts";
import { RawConnection } from "./raw-http2.ts";

const opened: { close(): unknown }[] = [];

/** Closes what a test has opened, the last first. */
export function closeAfterEach(): void {
  afterEach(async () => {
    for (const one of opened.splice(0).reverse()) await one.close();
  });
}

export async function openEndpoint(options: FakeOptions = {}): Promise<GrpcEndpoint> {
  const endpoint = await createGrpcServer(fakeOptions(options));
  opened.push({ close: () => endpoint.close(0) });
  return endpoint;
}

export function clientOf({ port }: GrpcEndpoint): RawClient {
  const client = new RawClient(port);
  opened.push(client);
  return client;
}

export async function openClient(options: FakeOptions = {}): Promise<RawClient> {
  return clientOf(await openEndpoint(options));
}

export function connectionTo({ port }: GrpcEndpoint, options: { readonly window?: number } = {}): RawConnection {
  const connection = new RawConnection(port, options);
  opened.push(connection);
  return connection;
}

/** A promise and what settles it. */
export function signal<T = void>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
