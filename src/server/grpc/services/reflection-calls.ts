import type { RpcServing } from "../../../dialects/contract.ts";
import type { Log } from "../../../model/ports.ts";
import { RPC_CODES, RpcStatusError } from "../../../wire/rpc.ts";
import type { Call } from "../call.ts";
import { MessageReader } from "../message-framing.ts";
import type { CallHandler, MethodOptions } from "../method-handler.ts";
import { type TimeoutTarget, tooManyBytes } from "../request-reader.ts";
import type { Reflection, ReflectionSession } from "./reflection.ts";

export const REFLECTION_SERVICES = [
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
] as const;
export const REFLECTION_METHOD = "ServerReflectionInfo";

/** Reflection is loaded when someone first asks for it: few ever do. */
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

/** One answer for each question. No more is read while the caller does not take the answers. */
export function createReflectionHandler(talks: ReflectionSessions, options: MethodOptions): CallHandler {
  const converse = async (call: Call): Promise<void> => {
    const talk = await talks.open(call);
    const questions = new ReflectionRequests(call, options);
    call.begin(undefined);
    try {
      for await (const question of questions.read()) await questions.answer(talk.answer(question));
    } finally {
      questions.end();
    }
    call.end();
  };
  return (call) => void converse(call).catch((error: unknown) => fail(call, error, options.log));
}

function fail(call: Call, error: unknown, log: Log): void {
  // The caller has left, which reads as an error.
  if (call.isOver) return;
  if (!(error instanceof RpcStatusError)) log.error({ err: error }, "Reflection failed.");
  const broken = { code: RPC_CODES.INTERNAL, message: "Reflection failed." };
  call.fail(error instanceof RpcStatusError ? error.status : broken);
}

/**
 * The questions of one caller, who has for each of them, and for taking its answer, as long as others have for a
 * request.
 */
class ReflectionRequests implements TimeoutTarget {
  readonly #call: Call;
  readonly #options: MethodOptions;
  readonly #reader: MessageReader;
  #held = 0;
  #isAnswering = false;

  constructor(call: Call, options: MethodOptions) {
    this.#call = call;
    this.#options = options;
    this.#reader = new MessageReader(options.maxMessageBytes);
    options.arrivals.add(this);
    call.stream.once("close", () => this.end());
  }

  /** Whatever else the caller sends is thrown away. */
  end(): void {
    this.#options.arrivals.delete(this);
    this.#release();
    this.#call.stream.resume();
  }

  onTimeout(): void {
    // A status would wait behind the answer that is not taken.
    if (this.#isAnswering) this.#call.reset();
    else this.#call.failAndClose({ code: RPC_CODES.DEADLINE_EXCEEDED, message: "No question arrived in time." });
  }

  /** Asks for more only when the last was answered. */
  async *read(): AsyncGenerator<Uint8Array> {
    const { stream, headers } = this.#call;
    const reader = this.#reader;
    const { decompressor, maxMessageBytes: maxBytes } = this.#options;
    const left = new AbortController();
    this.#call.onCancelled = () => left.abort();
    const encoding = headers["grpc-encoding"]?.toString();
    const options = { encoding, maxBytes, take: () => {}, signal: left.signal };
    // Its end is the status, which comes after the last question.
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
    arrivals.delete(this);
    if (!this.#call.isOver) arrivals.add(this);
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
