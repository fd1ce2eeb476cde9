import { isPromise, type RequestCredentials } from "../../auth/verify/contract.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { RpcFailure, RpcMessageReply, RpcReply, RpcRequest } from "../../wire/rpc.ts";
import { TOO_MUCH_UNSENT, type UnreadLimits } from "../access/byte-budgets.ts";
import type { Verdict } from "../access/gate.ts";
import type { Call } from "./call.ts";
import type { GrpcOptions, RpcBinding } from "./node-grpc.ts";
import {
  type CoarseTimeouts,
  type MessageHandler,
  type RequestLimits,
  type Timeout,
  type TimeoutTarget,
  UnaryRequestReader,
} from "./request-reader.ts";
import { closeSource, StreamPump } from "./stream-pump.ts";

/** Handles an incoming call. */
export type CallHandler = (call: Call) => void;

/** Answers the requests of a service. */
export interface RpcService {
  /** Sets the caller of the call. */
  answer(request: RpcRequest, call: Call): Promise<RpcReply>;
  /** Whether the caller has authenticated. Throws if the request is refused regardless of its message. */
  screen?(request: Omit<RpcRequest, "message">): Promise<boolean>;
  /** Converts a thrown error to a reply. */
  toFailure(error: unknown): RpcFailure;
}

export function toRpcService(
  { dialect, serving }: RpcBinding,
  { gate, log }: Pick<GrpcOptions, "gate" | "log">,
): RpcService {
  return {
    async screen(request) {
      const verdict = await gate.screen(toCredentials(request), undefined, dialect);
      if (ProtocolError.is(verdict)) throw verdict;
      return verdict.authenticated;
    },
    answer(request, call) {
      const handle = (verdict: Verdict): Promise<RpcReply> => {
        if (ProtocolError.is(verdict)) throw verdict;
        call.admit(verdict);
        return serving.handle(request, gate.contextFor(verdict, undefined, dialect));
      };
      const verdict =
        gate.checkAddress(request.remoteAddress, undefined, dialect) ??
        gate.admit(toCredentials(request), undefined, dialect);
      return isPromise(verdict) ? verdict.then(handle) : handle(verdict);
    },
    toFailure(error) {
      if (ProtocolError.is(error)) return { kind: "failure", status: serving.refuse(error) };
      log.error({ err: error }, "A call could not be answered.");
      const shown = new ProtocolError("INTERNAL_ERROR", "The server failed to answer.");
      return { kind: "failure", status: serving.refuse(shown) };
    },
  };
}

function toCredentials({ metadata, remoteAddress, certificate }: Omit<RpcRequest, "message">): RequestCredentials {
  return { headers: metadata, query: "", remoteAddress, certificate };
}

export interface MethodOptions extends RequestLimits, UnreadLimits {
  /** Timeouts of unread responses. */
  readonly leaving: CoarseTimeouts;
}

/** A unary response until it is read; a reader that takes nothing is disconnected, as with streams. */
class PendingAnswer implements TimeoutTarget {
  readonly #call: Call;
  readonly #options: MethodOptions;
  #timeout: Timeout;

  constructor(call: Call, bytes: number, options: MethodOptions) {
    this.#call = call;
    this.#options = options;
    this.#timeout = options.leaving.add(this);
    call.stream.once("close", () => {
      options.unsent.release(bytes, call.caller?.owner);
      options.leaving.delete(this.#timeout);
    });
  }

  readonly onProgress = (): void => {
    const { leaving } = this.#options;
    leaving.delete(this.#timeout);
    this.#timeout = leaving.add(this);
  };

  onTimeout(): void {
    this.#options.meter.count("readers_stalled");
    this.#call.reset();
  }
}

/** Handler of a method with one request message. */
export function createMethodHandler(
  service: string,
  method: string,
  streams: boolean,
  answering: RpcService,
  options: MethodOptions,
): CallHandler {
  const sendMessage = (call: Call, { message, metadata }: RpcMessageReply): void => {
    if (call.isOver || call.stream.closed) return;
    if (options.unsent.take(message.length, call.caller?.owner)) {
      const answer = new PendingAnswer(call, message.length, options);
      call.answer(message, metadata, answer.onProgress);
    } else send(call, answering.toFailure(new ProtocolError("RESOURCE_EXHAUSTED", TOO_MUCH_UNSENT, { retryAfter: 1 })));
  };
  const send = (call: Call, reply: RpcReply): void => {
    try {
      if (reply.kind === "message") sendMessage(call, reply);
      else if (reply.kind === "failure") call.fail(reply.status);
      else if (streams && !call.isOver) {
        call.begin(reply.metadata);
        new StreamPump(options, call, reply.messages[Symbol.asyncIterator]()).start();
      } else {
        closeSource(reply.messages[Symbol.asyncIterator](), options.log);
        if (!streams) throw new TypeError(`${service}/${method} has one answer and was given a stream.`);
      }
    } catch (error) {
      call.failWith(error);
    }
  };
  const headOf = ({ metadata, connection: { certificate, remoteAddress } }: Call) => {
    return { service, method, metadata, remoteAddress, certificate };
  };
  const handler: MessageHandler = {
    async admit(call) {
      try {
        return (await answering.screen?.(headOf(call))) === true;
      } catch (error) {
        send(call, answering.toFailure(error));
        return false;
      }
    },
    handle(call, message) {
      const request = { ...headOf(call), message };
      const refuse = (error: unknown): void => send(call, answering.toFailure(error));
      try {
        answering.answer(request, call).then((reply) => send(call, reply), refuse);
      } catch (error) {
        refuse(error);
      }
    },
  };
  return (call) => void new UnaryRequestReader(call, options, handler);
}
