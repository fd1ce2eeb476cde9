import type * as Grpc from "@grpc/grpc-js";
import { type Exchange, ExchangeLog } from "../evidence.ts";
import { type Fields, fieldsOf } from "../json.ts";
import { PeerFault } from "../outcome.ts";
import type { Version } from "../requirement.ts";
import { readDetails } from "./error-details.ts";
import { FrameQueue } from "./frame-queue.ts";
import { mergeHeaders, noAnswer } from "./http-client.ts";
import {
  type Answer,
  type CallOptions,
  callerHeaders,
  type Frame,
  type GrpcPeer,
  type OpenStream,
  type OperationName,
  type PeerOptions,
  type Refusal,
  type StreamingName,
  type Target,
  type WireError,
  type Witness,
} from "./peer.ts";
import { readStatusDetails } from "./rpc-details.ts";
import { METHODS, SERVICES } from "./rpc-methods.ts";
import { SPELLING_V1, type Spelling } from "./spelling.ts";
import { SPELLING_V03_PROTO } from "./spelling-v03-proto.ts";
import { standingHeaders, withTenant } from "./standing.ts";

/** The bytes of a version's messages, by their names without the package; values are in the JSON form. */
export interface MessageCodec {
  encode(message: string, value: unknown): Uint8Array;
  decode(message: string, bytes: Uint8Array): unknown;
}

const DETAILS = "grpc-status-details-bin";

/** The library is loaded when an interface needs it, not before. */
export async function createGrpcPeer(
  target: Target,
  options: PeerOptions,
  witness: Witness,
  codec: MessageCodec,
): Promise<GrpcPeer> {
  const grpc = await import("@grpc/grpc-js");
  const { version } = target;
  const log = new ExchangeLog(options.secrets);
  const spelling: Spelling = version === "1.0" ? SPELLING_V1 : SPELLING_V03_PROTO;
  const standing = standingHeaders(version, options);
  const { address, credentials } = addressOf(grpc, target.url, options.insecure);
  const client = new grpc.Client(address, credentials);
  /** Calls under way: they end with the run. */
  const calls = new Set<{ cancel(): void }>();
  options.signal.addEventListener("abort", () => {
    for (const call of calls) call.cancel();
  });

  function metadataOf({ as, headers = {} }: CallOptions = {}): Grpc.Metadata {
    if (options.signal.aborted) throw new PeerFault("the run has ended");
    const metadata = new grpc.Metadata();
    for (const [name, value] of mergeHeaders(standing, ...callerHeaders(options, as), headers)) {
      metadata.set(name.toLowerCase(), value);
    }
    return metadata;
  }

  function begin(method: string, metadata: Grpc.Metadata, body: string): Exchange {
    const headers = Object.entries(metadata.getMap()).map(([name, value]) => [name, String(value)] as const);
    return log.begin(`${target.url} ${SERVICES[version]}/${method}`, headers, body);
  }

  const pathOf = (method: string): string => `/${SERVICES[version]}/${method}`;
  const deadline = (): Date => new Date(Date.now() + options.requestTimeoutMs);

  function refused(error: Grpc.ServiceError, exchange: Exchange): Refusal {
    log.answered(exchange, `${error.code} ${grpc.status[error.code] ?? ""}`);
    log.appendTo(exchange, error.details);
    if (error.code === grpc.status.CANCELLED && options.signal.aborted) throw new PeerFault("the run has ended");
    if (error.code === grpc.status.DEADLINE_EXCEEDED) throw new PeerFault(noAnswer(options.requestTimeoutMs));
    if (error.code === grpc.status.UNAVAILABLE && error.metadata.get(DETAILS).length === 0)
      throw new PeerFault(error.details);
    const read = readRpcError(error.code, error.details, error.metadata.get(DETAILS)[0]);
    log.appendTo(exchange, read.details.length === 0 ? "" : ` ${JSON.stringify(read.details)}`);
    witness.refusal(read);
    return { ok: false, error: read, contentType: "application/grpc" };
  }

  function unary(method: string, bytes: Uint8Array, body: string, callOptions?: CallOptions) {
    const metadata = metadataOf(callOptions);
    const exchange = begin(method, metadata, body);
    return new Promise<{ readonly bytes: Uint8Array; readonly headers: Fields; exchange: Exchange } | Refusal>(
      (resolve, reject) => {
        let headers: Fields = {};
        const call = client.makeUnaryRequest(
          pathOf(method),
          toBuffer,
          (buffer) => buffer,
          bytes,
          metadata,
          { deadline: deadline() },
          (error, reply) => {
            if (error === null && reply !== undefined) {
              log.answered(exchange, "0 OK");
              resolve({ bytes: reply, headers, exchange });
              return;
            }
            try {
              resolve(refused(error as Grpc.ServiceError, exchange));
            } catch (fault) {
              reject(fault);
            }
          },
        );
        calls.add(call);
        call.on("status", () => calls.delete(call));
        call.on("metadata", (received: Grpc.Metadata) => {
          headers = received.getMap();
        });
      },
    );
  }

  async function answer(
    operation: OperationName,
    method: string,
    reply: string,
    bytes: Uint8Array,
    body: string,
    callOptions?: CallOptions,
  ): Promise<Answer> {
    const got = await unary(method, bytes, body, callOptions);
    if ("ok" in got) return got;
    const wire = decode(codec, reply, got.bytes);
    log.appendTo(got.exchange, JSON.stringify(wire));
    witness.result(operation, wire);
    const headers = Object.fromEntries(Object.entries(got.headers).map(([name, value]) => [name, String(value)]));
    return {
      ok: true,
      wire,
      result: spelling.result(operation, wire),
      headers,
      contentType: "application/grpc",
    };
  }

  return {
    binding: "GRPC",
    target,
    log,
    knows: (operation) => METHODS[version][operation] !== undefined,

    async call(operation, params, callOptions) {
      const { method, reply, request } = methodOf(operation, version);
      const value = spelling.request(operation, withTenant(params, target));
      return answer(operation, method, reply, codec.encode(request, value), JSON.stringify(value), callOptions);
    },

    open(operation: StreamingName, params, callOptions): Promise<OpenStream | Refusal> {
      const { method, reply, request } = methodOf(operation, version);
      const value = spelling.request(operation, withTenant(params, target));
      const metadata = metadataOf(callOptions);
      const exchange = begin(method, metadata, JSON.stringify(value));
      const call = client.makeServerStreamRequest(
        pathOf(method),
        toBuffer,
        (buffer: Uint8Array) => buffer,
        codec.encode(request, value),
        metadata,
      );
      calls.add(call);
      call.on("status", () => calls.delete(call));
      const frames = new FrameQueue<Frame>(options.requestTimeoutMs, () => call.cancel());
      return new Promise((resolve, reject) => {
        let begun = false;
        const timer = setTimeout(() => {
          call.cancel();
          reject(new PeerFault(noAnswer(options.requestTimeoutMs)));
        }, options.requestTimeoutMs);
        const open = (): void => {
          begun = true;
          clearTimeout(timer);
          resolve({ ok: "stream", frames, contentType: "application/grpc" });
        };
        call.on("data", (bytes: Uint8Array) => {
          if (!begun) {
            log.answered(exchange, "a stream");
            open();
          }
          try {
            const wire = decode(codec, reply, bytes);
            log.appendTo(exchange, `${JSON.stringify(wire)}\n`);
            witness.frame(wire);
            frames.push({ event: spelling.event(wire), wire });
          } catch (fault) {
            frames.end(fault instanceof Error ? fault : new PeerFault(String(fault)));
            call.cancel();
          }
        });
        call.on("end", () => {
          if (!begun) open();
          frames.end();
        });
        call.on("error", (error: Grpc.ServiceError) => {
          clearTimeout(timer);
          if (begun) {
            frames.end(new PeerFault(`the stream broke: ${error.message}`));
            return;
          }
          begun = true;
          try {
            resolve(refused(error, exchange));
          } catch (fault) {
            reject(fault);
          }
        });
      });
    },

    unary: (method, bytes, callOptions) =>
      answer("GetTask", method, "Task", bytes, Buffer.from(bytes).toString("hex"), callOptions),
    close: () => client.close(),
  };
}

function methodOf(operation: OperationName, version: Version) {
  const row = METHODS[version][operation];
  if (row === undefined) throw new PeerFault(`${operation} does not exist in ${version}`);
  return row;
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function decode(codec: MessageCodec, message: string, bytes: Uint8Array): unknown {
  try {
    return message === "Empty" ? null : codec.decode(message, bytes);
  } catch {
    throw new PeerFault(`the answer is no ${message}`);
  }
}

/** Cards give `host:port`, some an URL. Only what says so, or has the port for it, is encrypted. */
function addressOf(grpc: typeof Grpc, url: string, insecure: boolean) {
  const [, scheme = "", rest = url] = /^([a-z][a-z0-9+.-]*):\/\/([^/]+)/i.exec(url) ?? [];
  const plain = scheme === "http" || scheme === "grpc" || (scheme === "" && !/:443$/.test(rest));
  const options = insecure ? { rejectUnauthorized: false } : {};
  const credentials = plain ? grpc.credentials.createInsecure() : grpc.credentials.createSsl(null, null, null, options);
  return { address: rest, credentials };
}

function readRpcError(code: number, message: string, encoded: Buffer | string | undefined): WireError {
  const details = encoded === undefined ? [] : readStatusDetails(Buffer.from(encoded));
  const faults: WireError["faults"] =
    details === undefined ? [{ rule: "status-body", text: `${DETAILS} is no google.rpc.Status` }] : [];
  const read = readDetails(details ?? []);
  return {
    name: read.reason,
    code,
    httpStatus: undefined,
    message,
    details: (details ?? []).map(fieldsOf),
    faults: [...faults, ...read.faults],
  };
}
