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
  awaitFirstFrames,
  type CallSettings,
  callTarget,
  createIdentifier,
  decodeAll,
  encodingFailure,
  type Failure,
  type FrameReader,
  identifyOutcome,
  isUnknownToPeer,
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
    const { kind } = operation;
    const identify = createIdentifier(operation);
    let closing: NodeJS.Timeout | undefined;
    let answered = false;

    function decodeMessage(message: Uint8Array) {
      const { losses, value } = calling.decodeFrame(message);
      return { losses, value: value === undefined ? [] : [identify(value)] };
    }

    async function* frames(): AsyncGenerator<readonly StreamFrame[], void, undefined> {
      try {
        for await (const messages of stream.messages) {
          if (!answered) tracer?.rpcResponse(url, RPC_CODES.OK, {});
          answered = true;
          const { failure, read } = decodeAll(messages, decodeMessage, report);
          if (tracer !== undefined) for (const { json } of read) tracer.message({ method: "gRPC", url }, json);
          if (read.length > 0) yield read;
          if (failure !== undefined) throw failure;
        }
      } catch (error) {
        // A failure before the first message is a failure to open the stream, and is converted there.
        throw answered ? explain(error, kind, { method: "gRPC", url }) : error;
      } finally {
        clearTimeout(closing);
        stream.cancel();
      }
    }

    return {
      frames: frames(),
      cancel: () => stream.cancel(),
      closeWithin(milliseconds) {
        closing ??= setTimeout(() => stream.cancel(), milliseconds);
      },
    };
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
      const opened = await awaitFirstFrames(readMessages(stream, operation, attempted.url));
      if (opened.failure === undefined) return { ok: true, value: opened.reader };
      return failure(opened.failure, operation.kind, attempted);
    },
  };
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
