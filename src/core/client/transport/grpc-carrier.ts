/** gRPC over `@grpc/grpc-js`, loaded on first use because it costs more than the rest of the client. */

import type { ClientReadableStream, Metadata, ServiceError } from "@grpc/grpc-js";
import type { Signal } from "../../model/abort.ts";
import { CarrierError, NotConnectedError } from "../../wire/exchange.ts";
import { RPC_CODES, type RpcCall, type RpcMetadata, RpcStatusError } from "../../wire/rpc.ts";
import { type GrpcAddress, type GrpcChannel, GrpcChannels, type GrpcTlsOptions } from "./grpc-channels.ts";

type Grpc = typeof import("@grpc/grpc-js");

interface RpcCallOptions {
  readonly signal: Signal;
  /** For the whole call; for a stream, until the first response from the peer. */
  readonly timeoutMs?: number;
  /** When the peer may give up, in milliseconds since the epoch. */
  readonly deadline?: number | undefined;
  /** A connection that is silent for longer is pinged, if the server allows pings that often. */
  readonly silenceMs: number;
}

interface RpcAnswer {
  readonly metadata: RpcMetadata;
  readonly message: Uint8Array;
}

export interface RpcStream {
  /** Batched as received; reads no further than the consumer. Fails like `RpcCarrier`. */
  readonly messages: AsyncGenerator<readonly Uint8Array[], void, undefined>;
  /** Ends the iteration without an error. */
  cancel(): void;
}

/** Fails with `RpcStatusError` for a status from the peer and with `CarrierError` for connection failures. */
export interface RpcCarrier {
  unary(address: GrpcAddress, call: RpcCall, options: RpcCallOptions): Promise<RpcAnswer>;
  stream(address: GrpcAddress, call: RpcCall, options: RpcCallOptions): RpcStream;
}

let shared: RpcCarrier | undefined;

/** Shared by all agents, so that those at one address share a connection. */
export function sharedGrpcCarrier(): RpcCarrier {
  shared ??= createGrpcCarrier();
  return shared;
}

export function createGrpcCarrier(options: GrpcTlsOptions = {}): RpcCarrier {
  let loading: Promise<{ readonly grpc: Grpc; readonly channels: GrpcChannels }> | undefined;
  const load = () => {
    loading ??= import("@grpc/grpc-js").then((grpc) => ({ grpc, channels: new GrpcChannels(grpc, options) }));
    return loading;
  };

  async function unary(address: GrpcAddress, call: RpcCall, options: RpcCallOptions): Promise<RpcAnswer> {
    const { channels, grpc } = await load();
    const { signal } = options;
    if (signal.aborted) throw abortedError();
    const metadata = toMetadata(grpc, call.metadata);
    const channel = channels.take(address, options.silenceMs);
    const deadline = unaryDeadline(options);
    return new Promise((resolve, reject) => {
      let received: RpcMetadata = {};
      const request = channel.client.makeUnaryRequest(
        pathOf(call),
        toBuffer,
        identity,
        call.message,
        metadata,
        deadline === undefined ? {} : { deadline },
        (error, message) => {
          signal.removeEventListener("abort", onAbort);
          const failure = error === null ? undefined : toFailure(error, signal);
          channels.release(channel, failure);
          if (failure !== undefined) reject(failure);
          else resolve({ metadata: received, message: message ?? new Uint8Array() });
        },
      );
      const onAbort = (): void => request.cancel();
      signal.addEventListener("abort", onAbort, { once: true });
      request.on("metadata", (given: Metadata) => {
        received = textEntries(given);
      });
    });
  }

  function stream(address: GrpcAddress, call: RpcCall, options: RpcCallOptions): RpcStream {
    let cancelled = false;
    let reading: MessageReader | undefined;

    async function* messages(): AsyncGenerator<readonly Uint8Array[], void, undefined> {
      const { channels, grpc } = await load();
      if (cancelled) return;
      if (options.signal.aborted) throw abortedError();
      const metadata = toMetadata(grpc, call.metadata);
      const channel = channels.take(address, options.silenceMs);
      const opened = openStream(channel, call, metadata, options.deadline);
      const onAbort = (): void => opened.stream.cancel();
      options.signal.addEventListener("abort", onAbort, { once: true });
      const mute = watchFirstResponse(opened.stream, channel, grpc, options.timeoutMs);
      reading = opened;
      let failure: Error | undefined;
      try {
        for (let batch = await opened.read(); batch.length > 0; batch = await opened.read()) yield batch;
        if (opened.failure === undefined || cancelled) return;
        failure = options.signal.aborted ? abortedError() : (mute.failure ?? toFailure(opened.failure, options.signal));
        throw failure;
      } finally {
        mute.stop();
        options.signal.removeEventListener("abort", onAbort);
        opened.stream.cancel();
        channels.release(channel, failure);
      }
    }

    const all = messages();
    return {
      messages: all,
      cancel() {
        cancelled = true;
        reading?.stream.cancel();
        void all.return();
      },
    };
  }

  return { unary, stream };
}

/** Ends a stream without any response from the peer. The call itself may last as long as its caller waits. */
function watchFirstResponse(
  stream: ClientReadableStream<Uint8Array>,
  { client }: GrpcChannel,
  grpc: Grpc,
  timeoutMs: number | undefined,
): { readonly failure: CarrierError | undefined; stop(): void } {
  let failure: CarrierError | undefined;
  const onTimeout = (): void => {
    const connected = client.getChannel().getConnectivityState(false) === grpc.connectivityState.READY;
    const cause = connected ? undefined : new NotConnectedError("the connection was not answered", "");
    failure = new CarrierError("timeout", "The server did not answer in time", { cause });
    stream.cancel();
  };
  const timer = timeoutMs === undefined ? undefined : setTimeout(onTimeout, timeoutMs);
  const stop = (): void => clearTimeout(timer);
  stream.once("metadata", stop);
  stream.once("readable", stop);
  return {
    stop,
    get failure() {
      return failure;
    },
  };
}

interface MessageReader {
  readonly stream: ClientReadableStream<Uint8Array>;
  readonly failure: ServiceError | undefined;
  /** Empty at the end. */
  read(): Promise<readonly Uint8Array[]>;
}

/**
 * Reads manually instead of with the stream's own iterator, which yields one message at a time and discards messages
 * received before an error. Reads nothing ahead beyond the stream's own small buffer, for backpressure.
 */
function openStream(
  { client }: GrpcChannel,
  call: RpcCall,
  metadata: Metadata,
  deadline: number | undefined,
): MessageReader {
  const options = deadline === undefined ? {} : { deadline };
  const stream = client.makeServerStreamRequest(pathOf(call), toBuffer, identity, call.message, metadata, options);
  let failure: ServiceError | undefined;
  let ended = false;
  let wake = (): void => {};
  stream.on("readable", () => wake());
  stream.on("end", () => {
    ended = true;
    wake();
  });
  stream.on("error", (error: ServiceError) => {
    failure = error;
    wake();
  });

  async function read(): Promise<readonly Uint8Array[]> {
    for (;;) {
      const batch: Uint8Array[] = [];
      for (let message = stream.read(); message !== null; message = stream.read()) batch.push(message as Uint8Array);
      if (batch.length > 0 || ended || failure !== undefined) return batch;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }

  return {
    stream,
    read,
    get failure() {
      return failure;
    },
  };
}

function unaryDeadline({ deadline, timeoutMs }: RpcCallOptions): number | undefined {
  const timeout = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
  if (timeout === undefined || deadline === undefined) return timeout ?? deadline;
  return Math.min(timeout, deadline);
}

function pathOf({ method, service }: RpcCall): string {
  return `/${service}/${method}`;
}

function toBuffer(message: Uint8Array): Buffer {
  return Buffer.from(message.buffer, message.byteOffset, message.byteLength);
}

function identity(message: Buffer): Uint8Array {
  return message;
}

/** Headers that belong to the connection or to gRPC itself. */
const EXCLUDED_HEADERS = new Set([
  "accept",
  "connection",
  "content-length",
  "content-type",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
  "user-agent",
]);

function toMetadata(grpc: Grpc, entries: RpcMetadata): Metadata {
  const metadata = new grpc.Metadata();
  for (const [spelt, value] of Object.entries(entries)) {
    const name = spelt.toLowerCase();
    if (EXCLUDED_HEADERS.has(name)) continue;
    // Checked here because the library would include the value, possibly a credential, in its error.
    if (!/^[0-9a-z_.-]+$/.test(name) || !/^[ -~]*$/.test(value)) {
      throw notConnectedError(`the header ${JSON.stringify(name)} cannot be sent over gRPC`, "");
    }
    metadata.set(name, name.endsWith("-bin") ? Buffer.from(value, "base64") : value);
  }
  return metadata;
}

function textEntries(metadata: Metadata): RpcMetadata {
  const entries: Record<string, string> = {};
  for (const name of Object.keys(metadata.getMap())) {
    if (!name.endsWith("-bin")) entries[name] = metadata.get(name).join(",");
  }
  return entries;
}

/** Messages of the library for calls that were never sent, and for connections that broke during a call. */
const NOT_SENT = /^(?:No connection established|Name resolution failed|Stream refused by server|Channel closed)/;
const STILL_CONNECTING = /Waiting for LB pick$/;
const CONNECTION_BROKE = /^Connection dropped|^Call cancelled$|^Received RST_STREAM|ECONNRESET|ETIMEDOUT/;
const TOO_LARGE = /larger than max/;

function toFailure(error: ServiceError, signal: Signal): Error {
  const { code, details } = error;
  if (signal.aborted) return abortedError();
  if (code === RPC_CODES.DEADLINE_EXCEEDED) {
    const cause = STILL_CONNECTING.test(details) ? new NotConnectedError(details, "") : error;
    return new CarrierError("timeout", "The server did not answer in time", { cause });
  }
  if (code === RPC_CODES.UNAVAILABLE && NOT_SENT.test(details)) return notConnectedError(...lastError(details));
  if (CONNECTION_BROKE.test(details)) {
    return new CarrierError("broken-stream", "The connection broke while the answer was awaited", { cause: error });
  }
  if (code === RPC_CODES.RESOURCE_EXHAUSTED && TOO_LARGE.test(details)) {
    return new CarrierError("too-large", "The answer is larger than allowed", { cause: error });
  }
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  return new RpcStatusError({
    code,
    message: details,
    metadata: textEntries(error.metadata),
    ...(bytes instanceof Uint8Array ? { details: bytes } : {}),
  });
}

/** The useful part of the library's error message, and the socket error code in it. */
function lastError(details: string): [message: string, code: string] {
  if (details.startsWith("Name resolution failed")) return [details, "ENOTFOUND"];
  const found = /Last error: (?:Error: )?(.*?)(?: \(\d{4}-[^)]*\))?\. Resolution note/.exec(details)?.[1] ?? details;
  return [found, /\bE[A-Z]{4,}\b/.exec(found)?.[0] ?? ""];
}

function notConnectedError(message: string, code: string): CarrierError {
  return new CarrierError("unreachable", "The server could not be reached", {
    cause: new NotConnectedError(message, code),
  });
}

function abortedError(): CarrierError {
  return new CarrierError("aborted", "The call was aborted");
}
