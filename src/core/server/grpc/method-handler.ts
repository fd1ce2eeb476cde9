import { isPromise, type RequestCredentials } from "../../auth/verify/contract.ts";
import { ANONYMOUS, type Caller } from "../../model/caller.ts";
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
  /** Who calls, by the metadata; throws for a caller that is refused. Absent: the service is open to all. */
  admit?(request: Omit<RpcRequest, "message">): Caller | Promise<Caller>;
  answer(request: RpcRequest, call: Call): Promise<RpcReply>;
  /** Converts a thrown error to a reply. */
  toFailure(error: unknown): RpcFailure;
}

export function toRpcService(
  { dialect, serving }: RpcBinding,
  { gate, log }: Pick<GrpcOptions, "gate" | "log">,
): RpcService {
  return {
    admit(request) {
      const verdict =
        gate.checkAddress(request.remoteAddress, undefined, dialect) ??
        gate.admit(toCredentials(request), undefined, dialect);
      return isPromise(verdict) ? verdict.then(requireCaller) : requireCaller(verdict);
    },
    answer: (request, { caller = ANONYMOUS }) => serving.handle(request, gate.contextFor(caller, undefined, dialect)),
    toFailure(error) {
      if (ProtocolError.is(error)) return { kind: "failure", status: serving.refuse(error) };
      log.error({ err: error }, "A call could not be answered.");
      const shown = new ProtocolError("INTERNAL_ERROR", "The server failed to answer.");
      return { kind: "failure", status: serving.refuse(shown) };
    },
  };
}

function requireCaller(verdict: Verdict): Caller {
  if (ProtocolError.is(verdict)) throw verdict;
  return verdict;
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
  const headOf = ({ metadata, remoteAddress, connection: { certificate } }: Call) => {
    return { service, method, metadata, remoteAddress, certificate };
  };
  const handler: MessageHandler = {
    admit(call) {
      const refuse = (error: unknown): void => send(call, answering.toFailure(error));
      try {
        const caller = answering.admit?.(headOf(call));
        if (isPromise(caller)) return call.awaitAdmission(caller).catch(refuse);
        if (caller !== undefined) call.admit(caller);
      } catch (error) {
        refuse(error);
      }
      return undefined;
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
