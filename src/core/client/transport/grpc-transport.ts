/** Transport over gRPC: unary calls and server streams of encoded messages. */

import type { RpcCalling } from "../../dialects/contract.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { Operation, OperationKind, OutcomeOf, StreamFrame } from "../../model/operation.ts";
import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";
import { isTransient } from "../call/retry.ts";
import { type AttemptedCall, failedBeforeSending, toConnectionError } from "../errors.ts";
import type { ChosenInterface } from "../options.ts";
import type { RpcCarrier, RpcStream } from "./grpc-carrier.ts";
import type { GrpcAddress } from "./grpc-channels.ts";
import {
  type Attempt,
  type CallSettings,
  ConnectionFrames,
  callTarget,
  createIdentifier,
  decodeAll,
  encodingFailure,
  type Failure,
  type FrameReader,
  identifyOutcome,
  isUnknownToPeer,
  NO_MORE_FRAMES,
  type Transport,
  type TransportSetup,
  type UnaryOperation,
} from "./transport.ts";

export function createGrpcTransport(
  calling: RpcCalling,
  chosen: ChosenInterface,
  address: GrpcAddress,
  carrier: RpcCarrier,
  setup: TransportSetup,
): Transport {
  const { report, tracer } = setup;
  const silenceMs = setup.streamSilenceMs;

  /** The call, where it goes and its bounds. */
  function prepare(operation: Operation, settings: CallSettings) {
    try {
      const { losses, value: call } = calling.encode(operation, callTarget(operation, settings, chosen, setup));
      report(losses);
      const url = `${address.secure ? "grpcs" : "grpc"}://${address.authority}/${call.service}/${call.method}`;
      const { deadline, signal } = settings;
      const options = { signal, timeoutMs: settings.timeoutMs ?? setup.timeoutMs, deadline, silenceMs };
      const attempted: AttemptedCall = { method: "gRPC", url, timeoutMs: options.timeoutMs };
      tracer?.rpcRequest(url, call.metadata, { bytes: call.message.byteLength, content: contentOf(operation) });
      return { ok: true as const, call, options, attempted };
    } catch (error) {
      return encodingFailure(error);
    }
  }

  /** Decodes a status into a protocol error; other failures become connection errors. */
  function explain(error: unknown, kind: OperationKind, attempted: AttemptedCall): Failure["error"] {
    if (ProtocolError.is(error)) return error;
    return error instanceof RpcStatusError
      ? calling.decodeFailure(error.status, kind)
      : toConnectionError(error, attempted);
  }

  function failure(error: unknown, kind: OperationKind, attempted: AttemptedCall): Failure {
    if (error instanceof RpcStatusError) {
      tracer?.rpcResponse(attempted.url, error.status.code, error.status.metadata ?? {});
    }
    const explained = explain(error, kind, attempted);
    const stumbled = ProtocolError.is(explained) && explained.code === "INTERNAL_ERROR";
    const isUnreceived = ProtocolError.is(explained)
      ? isUnknownToPeer(explained) || isUnimplemented(error)
      : failedBeforeSending(explained);
    return {
      ok: false,
      error: explained,
      transient: stumbled || isTransient(explained),
      reach: isUnreceived ? "untaken" : "unknown",
    };
  }

  function readMessages(stream: RpcStream, operation: Operation, url: string): FrameReader {
    const identify = createIdentifier(operation);
    return new MessageFrames(stream, {
      onAnswer: () => tracer?.rpcResponse(url, RPC_CODES.OK, {}),
      decode(messages) {
        const decoded = decodeAll(messages, decodeMessage, report);
        if (tracer !== undefined) for (const { json } of decoded.read) tracer.message({ method: "gRPC", url }, json);
        return decoded;
      },
      explain: (error) => explain(error, operation.kind, { method: "gRPC", url }),
    });

    function decodeMessage(message: Uint8Array) {
      const { losses, value } = calling.decodeFrame(message);
      return { losses, value: value === undefined ? [] : [identify(value)] };
    }
  }

  return {
    async attempt<O extends UnaryOperation>(operation: O, settings: CallSettings): Promise<Attempt<OutcomeOf<O>>> {
      const prepared = prepare(operation, settings);
      if (!prepared.ok) return prepared;
      const { attempted, call, options } = prepared;
      try {
        const answer = await carrier.unary(address, call, options);
        const { losses, value } = calling.decode(operation.kind, answer.message);
        const bytes = answer.message.byteLength;
        tracer?.rpcResponse(attempted.url, RPC_CODES.OK, answer.metadata, { bytes, content: value });
        report(losses);
        return { ok: true, value: identifyOutcome(operation, value as OutcomeOf<O>) };
      } catch (error) {
        return failure(error, operation.kind, attempted);
      }
    },
    async open(operation, settings) {
      const prepared = prepare(operation, settings);
      if (!prepared.ok) return prepared;
      const { attempted, call, options } = prepared;
      const stream = carrier.stream(address, call, options);
      // gRPC opens any stream at once; only the first message or status shows whether the peer accepted the call.
      const reader = readMessages(stream, operation, attempted.url);
      const failed = await reader.awaitFirst();
      return failed === undefined ? { ok: true, value: reader } : failure(failed, operation.kind, attempted);
    },
  };
}

interface MessageReading {
  /** Called before the first messages are decoded. */
  onAnswer(): void;
  decode(messages: readonly Uint8Array[]): { readonly read: readonly StreamFrame[]; readonly failure: unknown };
  explain(error: unknown): unknown;
}

/** The frames of one stream over gRPC. */
class MessageFrames extends ConnectionFrames {
  readonly #stream: RpcStream;
  readonly #reading: MessageReading;
  #closing: NodeJS.Timeout | undefined;
  #isAnswered = false;
  /** Of the message after those that were returned last. */
  #failure: unknown;

  constructor(stream: RpcStream, reading: MessageReading) {
    super();
    this.#stream = stream;
    this.#reading = reading;
  }

  protected async read(): Promise<IteratorResult<readonly StreamFrame[], void>> {
    try {
      for (;;) {
        if (this.#failure !== undefined) throw this.#failure;
        const step = await this.#stream.messages.next();
        if (step.done === true) break;
        if (!this.#isAnswered) this.#reading.onAnswer();
        this.#isAnswered = true;
        const { failure, read } = this.#reading.decode(step.value);
        this.#failure = failure;
        if (read.length > 0) return { done: false, value: read };
      }
    } catch (error) {
      this.cancel();
      // A failure before the first message is a failure to open the stream, and is converted there.
      throw this.#isAnswered ? this.#reading.explain(error) : error;
    }
    this.cancel();
    return NO_MORE_FRAMES;
  }

  cancel(): void {
    clearTimeout(this.#closing);
    this.#stream.cancel();
  }

  closeWithin(milliseconds: number): void {
    this.#closing ??= setTimeout(() => this.#stream.cancel(), milliseconds);
  }
}

function contentOf({ kind: _, ...content }: Operation): object {
  return content;
}

/** Without details the status comes from the server at that address and not from the agent, which would add them. */
function isUnimplemented(error: unknown): boolean {
  return (
    error instanceof RpcStatusError &&
    error.status.code === RPC_CODES.UNIMPLEMENTED &&
    error.status.details === undefined
  );
}
