import type { RpcServing } from "../../dialects/contract.ts";
import type { Log } from "../../model/ports.ts";
import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";
import type { Call } from "./call.ts";
import type { CallHandler } from "./calls.ts";
import type { Decompressor } from "./decompress.ts";
import { MessageReader } from "./message-reader.ts";
import type { Reflection, ReflectionTalk } from "./reflection.ts";

export const REFLECTION_SERVICES = [
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
] as const;
export const REFLECTION_METHOD = "ServerReflectionInfo";

/** Reflection is loaded when someone first asks for it: few ever do. */
export class Talks {
  readonly #services: readonly RpcServing[];
  readonly #names: readonly string[];
  readonly #open = new Set<Call>();
  #reflection: Promise<Reflection> | undefined;

  constructor(services: readonly RpcServing[], names: readonly string[]) {
    this.#services = services;
    this.#names = names;
  }

  begin(call: Call): Promise<ReflectionTalk> {
    this.#open.add(call);
    call.stream.once("close", () => this.#open.delete(call));
    this.#reflection ??= import("./reflection.ts").then(({ Reflection }) => Reflection.of(this.#services, this.#names));
    return this.#reflection.then((reflection) => reflection.talk());
  }

  close(): void {
    for (const call of this.#open) call.fail({ code: RPC_CODES.UNAVAILABLE, message: "The server is closing." });
  }
}

export interface ReflectionLimits {
  readonly maxMessageBytes: number;
  readonly decompressor: Decompressor;
}

/** One answer for each question. No more is read while the caller does not take the answers. */
export function reflectionHandler(talks: Talks, limits: ReflectionLimits, log: Log): CallHandler {
  const converse = async (call: Call): Promise<void> => {
    const talk = await talks.begin(call);
    call.begin(undefined);
    for await (const question of questionsOf(call, limits)) {
      await new Promise<void>((resolve) => {
        if (call.write([talk.answer(question)])) resolve();
        else call.stream.once("drain", resolve);
      });
    }
    call.end();
  };
  return (call) => void converse(call).catch((error: unknown) => fail(call, error, log));
}

function fail(call: Call, error: unknown, log: Log): void {
  // The caller has left, which reads as an error.
  if (call.isOver) return;
  if (!(error instanceof RpcStatusError)) log.error({ err: error }, "Reflection failed.");
  const broken = { code: RPC_CODES.INTERNAL, message: "Reflection failed." };
  call.fail(error instanceof RpcStatusError ? error.status : broken);
}

/** Asks for more only when the last was answered. */
async function* questionsOf(
  call: Call,
  { maxMessageBytes, decompressor }: ReflectionLimits,
): AsyncGenerator<Uint8Array> {
  const { stream, headers } = call;
  const reader = new MessageReader(maxMessageBytes);
  const left = new AbortController();
  call.onLeft = () => left.abort();
  const options = {
    encoding: headers["grpc-encoding"]?.toString(),
    maxBytes: maxMessageBytes,
    take: () => {},
    signal: left.signal,
  };
  // Its end is the status, which comes after the last question.
  for await (const piece of stream.iterator({ destroyOnReturn: false })) {
    reader.push(piece);
    for (let message = reader.next(); message !== undefined; message = reader.next()) {
      yield reader.isCompressed ? await decompressor.decompress(message, options) : message;
    }
  }
  if (!reader.isEmpty) throw new RpcStatusError({ code: RPC_CODES.INTERNAL, message: "A message ends too soon." });
}
