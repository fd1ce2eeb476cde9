import type { handleServerStreamingCall, handleUnaryCall, ServerWritableStream, sendUnaryData } from "@grpc/grpc-js";
import { isPromise } from "../../auth/promises.ts";
import type { RpcServing } from "../../dialects/contract.ts";
import { ProtocolError } from "../../model/errors.ts";
import { RPC_CODES, type RpcFailure, type RpcReply, type RpcRequest, type RpcStatus } from "../../wire/rpc.ts";
import { Batch, type Outgoing } from "./carried-call.ts";
import type { Envelope } from "./envelope.ts";
import { textEntries, toMetadata, toStatusFields } from "./metadata.ts";
import type { GrpcOptions } from "./node-grpc.ts";
import { abandon, StreamPump, type StreamPumpOptions } from "./stream-pump.ts";

/** Answers a request; never rejects. */
export type Answer = (request: RpcRequest) => Promise<RpcReply>;

const BROKEN: RpcStatus = { code: RPC_CODES.INTERNAL, message: "The server failed to answer." };

export function answerOf(serving: RpcServing, { contextOf, log }: Pick<GrpcOptions, "contextOf" | "log">): Answer {
  return async (request) => {
    try {
      const found = contextOf(request, serving);
      const context = isPromise(found) ? await found : found;
      return ProtocolError.is(context) ? refusal(serving, context) : await serving.handle(request, context);
    } catch (error) {
      if (ProtocolError.is(error)) return refusal(serving, error);
      log.error({ err: error }, "A call could not be answered.");
      return refusal(serving, new ProtocolError("INTERNAL_ERROR", BROKEN.message));
    }
  };
}

function refusal(serving: RpcServing, error: ProtocolError): RpcFailure {
  return { kind: "failure", status: serving.refuse(error) };
}

/** A method with one answer. */
export function unaryHandler(
  service: string,
  method: string,
  answer: Answer,
  options: StreamPumpOptions,
): handleUnaryCall<Envelope, Outgoing> {
  const { log } = options;
  const send = (call: UnaryCall, reply: RpcReply, callback: sendUnaryData<Outgoing>) => {
    if (reply.kind === "message") {
      if (reply.metadata !== undefined) call.sendMetadata(toMetadata(reply.metadata, log));
      callback(null, reply.message);
    } else if (reply.kind === "failure") callback(toStatusFields(reply.status, log));
    else {
      abandon(reply.messages[Symbol.asyncIterator](), log);
      throw new TypeError(`${service}/${method} has one answer and was given a stream.`);
    }
  };
  return async (call, callback) => {
    try {
      send(call, await answer(toRequest(service, method, call)), callback);
    } catch (error) {
      log.error({ err: error }, "A call could not be answered.");
      callback(toStatusFields(BROKEN, log));
    }
  };
}

/** A method whose answer is a stream. */
export function streamHandler(
  service: string,
  method: string,
  answer: Answer,
  options: StreamPumpOptions,
): handleServerStreamingCall<Envelope, Outgoing> {
  const { log } = options;
  const send = (call: ServerWritableStream<Envelope, Outgoing>, reply: RpcReply) => {
    if (reply.kind === "failure") {
      call.emit("error", toStatusFields(reply.status, log));
      return;
    }
    call.sendMetadata(toMetadata(reply.metadata, log));
    if (reply.kind === "stream") new StreamPump(options, call, reply.messages[Symbol.asyncIterator]()).begin();
    else {
      call.write(new Batch([reply.message]));
      call.end();
    }
  };
  return async (call) => {
    try {
      const reply = await answer(toRequest(service, method, call));
      if (!call.cancelled) send(call, reply);
      else if (reply.kind === "stream") abandon(reply.messages[Symbol.asyncIterator](), log);
    } catch (error) {
      log.error({ err: error }, "A call could not be answered.");
      call.emit("error", toStatusFields(BROKEN, log));
    }
  };
}

type UnaryCall = Parameters<handleUnaryCall<Envelope, Outgoing>>[0];

function toRequest(service: string, method: string, call: UnaryCall): RpcRequest {
  return {
    service,
    method,
    metadata: textEntries(call.metadata),
    message: call.request.open(),
    remoteAddress: call.request.from?.address,
    certificate: call.request.from?.certificate,
  };
}
