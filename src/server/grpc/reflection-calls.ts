import type { handleBidiStreamingCall, ServerDuplexStream } from "@grpc/grpc-js";
import type { RpcServing } from "../../dialects/contract.ts";
import type { Log } from "../../model/ports.ts";
import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";
import type { Outgoing } from "./carried-call.ts";
import type { Envelope } from "./envelope.ts";
import { toStatusFields } from "./metadata.ts";
import type { Reflection, ReflectionTalk } from "./reflection.ts";

export const REFLECTION_SERVICES = [
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
] as const;
export const REFLECTION_METHOD = "ServerReflectionInfo";

type Call = ServerDuplexStream<Envelope, Outgoing>;

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

  async begin(call: Call): Promise<ReflectionTalk> {
    this.#open.add(call);
    call.once("close", () => this.#open.delete(call));
    this.#reflection ??= import("./reflection.ts").then(({ Reflection }) => Reflection.of(this.#services, this.#names));
    return (await this.#reflection).talk();
  }

  close(): void {
    const status = { code: RPC_CODES.UNAVAILABLE, details: "The server is closing." };
    for (const call of this.#open) call.emit("error", status);
  }
}

/** One answer for each question. No more is read while the caller does not take the answers. */
export function reflectionHandler(talks: Talks, log: Log): handleBidiStreamingCall<Envelope, Outgoing> {
  return async (call) => {
    const fail = (error: unknown) => {
      if (!(error instanceof RpcStatusError)) log.error({ err: error }, "Reflection failed.");
      const broken = { code: RPC_CODES.INTERNAL, message: "Reflection failed." };
      call.removeAllListeners("data");
      call.emit("error", toStatusFields(error instanceof RpcStatusError ? error.status : broken, log));
    };
    try {
      const talk = await talks.begin(call);
      call.on("end", () => call.end());
      call.on("data", (message: Envelope) => {
        try {
          if (call.write(talk.answer(message.open()))) return;
          call.pause();
          call.once("drain", () => call.resume());
        } catch (error) {
          fail(error);
        }
      });
    } catch (error) {
      fail(error);
    }
  };
}
