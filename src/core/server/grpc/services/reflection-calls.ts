import { setImmediate as nextTurn } from "node:timers/promises";
import type { RpcServing } from "../../../dialects/contract.ts";
import type { Log } from "../../../model/ports.ts";
import { RPC_CODES, RpcStatusError } from "../../../wire/rpc.ts";
import type { Call } from "../call.ts";
import { MessageReader } from "../message-framing.ts";
import type { CallHandler, MethodOptions } from "../method-handler.ts";
import { type Timeout, type TimeoutTarget, tooManyBytes } from "../request-reader.ts";
import type { Reflection, ReflectionSession } from "./reflection.ts";

export const REFLECTION_SERVICES = [
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
] as const;
export const REFLECTION_METHOD = "ServerReflectionInfo";

/** Loads reflection on first use: it is rarely needed. */
export class ReflectionSessions {
  readonly #services: readonly RpcServing[];
  readonly #names: readonly string[];
  readonly #open = new Set<Call>();
  #reflection: Promise<Reflection> | undefined;

  constructor(services: readonly RpcServing[], names: readonly string[]) {
    this.#services = services;
    this.#names = names;
  }

  open(call: Call): Promise<ReflectionSession> {
    this.#open.add(call);
    call.stream.once("close", () => this.#open.delete(call));
    this.#reflection ??= import("./reflection.ts").then(({ Reflection }) => Reflection.of(this.#services, this.#names));
    return this.#reflection.then((reflection) => reflection.openSession());
  }

  close(): void {
    for (const call of this.#open) call.fail({ code: RPC_CODES.UNAVAILABLE, message: "The server is closing." });
  }
}

/** Sends one response per request. Reads no further while the caller does not read the responses. */
export function createReflectionHandler(sessions: ReflectionSessions, options: MethodOptions): CallHandler {
  const serve = async (call: Call): Promise<void> => {
    const session = await sessions.open(call);
    const requests = new ReflectionRequests(call, options);
    call.begin(undefined);
    try {
      for await (const request of requests.read()) await requests.answer(session(request));
    } finally {
      requests.end();
    }
    call.end();
  };
  return (call) => void serve(call).catch((error: unknown) => fail(call, error, options.log));
}

function fail(call: Call, error: unknown, log: Log): void {
  // The caller has cancelled, which surfaces as an error.
  if (call.isOver) return;
  if (!(error instanceof RpcStatusError)) log.error({ err: error }, "Reflection failed.");
  const broken = { code: RPC_CODES.INTERNAL, message: "Reflection failed." };
  call.fail(error instanceof RpcStatusError ? error.status : broken);
}

/** The requests of one call. Each request, and reading its response, has the same timeout as a unary request. */
class ReflectionRequests implements TimeoutTarget {
  readonly #call: Call;
  readonly #options: MethodOptions;
  readonly #reader: MessageReader;
  #timeout: Timeout;
  #held = 0;
  #isAnswering = false;

  constructor(call: Call, options: MethodOptions) {
    this.#call = call;
    this.#options = options;
    this.#reader = new MessageReader(options.maxMessageBytes);
    this.#timeout = options.arrivals.add(this);
    call.stream.once("close", () => this.end());
  }

  /** Discards the rest of the request stream. */
  end(): void {
    this.#options.arrivals.delete(this.#timeout);
    this.#release();
    this.#call.stream.resume();
  }

  onTimeout(): void {
    // A status would be queued behind the unread response.
    if (this.#isAnswering) this.#call.reset();
    else this.#call.failAndClose({ code: RPC_CODES.DEADLINE_EXCEEDED, message: "No question arrived in time." });
  }

  /** Backpressure: reads more only after the last request was answered. */
  async *read(): AsyncGenerator<Uint8Array> {
    const { stream, headers } = this.#call;
    const reader = this.#reader;
    const { decompressor, maxMessageBytes: maxBytes } = this.#options;
    const left = new AbortController();
    this.#call.onCancelled = () => left.abort();
    const encoding = headers["grpc-encoding"]?.toString();
    const options = { encoding, maxBytes, take: () => {}, signal: left.signal };
    // Not destroyed at the end: the status is sent after the last request.
    for await (const piece of stream.iterator({ destroyOnReturn: false })) {
      this.#hold(reader.length + piece.length);
      reader.push(piece);
      for (let message = reader.next(); message !== undefined; message = reader.next()) {
        yield reader.isCompressed ? await decompressor.decompress(message, options) : message;
      }
      this.#hold(reader.length);
    }
    if (!reader.isEmpty) throw new RpcStatusError({ code: RPC_CODES.INTERNAL, message: "A message ends too soon." });
  }

  async answer(message: Uint8Array): Promise<void> {
    const { stream } = this.#call;
    this.#isAnswering = true;
    if (!this.#call.write([message]) && !this.#call.isOver) {
      await new Promise<void>((resolve) => stream.once("drain", resolve).once("close", resolve));
    }
    this.#isAnswering = false;
    const { arrivals } = this.#options;
    arrivals.delete(this.#timeout);
    if (!this.#call.isOver) this.#timeout = arrivals.add(this);
    // Hundreds of questions may have arrived at once; other calls take turns with them.
    await nextTurn();
  }

  #hold(bytes: number): void {
    this.#release();
    if (!this.#options.arriving.take(bytes, false)) throw tooManyBytes();
    this.#held = bytes;
  }

  #release(): void {
    this.#options.arriving.release(this.#held, false);
    this.#held = 0;
  }
}
