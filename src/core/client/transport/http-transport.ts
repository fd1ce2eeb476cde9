/** Transport over HTTP: buffered responses, and streams as server-sent events. */

import type { BufferedResponse, ExchangeCalling } from "../../dialects/contract.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { Operation, OutcomeOf, StreamFrame } from "../../model/operation.ts";
import type { ExchangeAnswer, ExchangeCall, Exchanger } from "../../wire/exchange.ts";
import { isTransient } from "../call/retry.ts";
import { changeError, failedBeforeSending, toConnectionError } from "../errors.ts";
import type { ChosenInterface } from "../options.ts";
import { PeerSession } from "./peer-session.ts";
import {
  type Attempt,
  type CallSettings,
  callTarget,
  createFrameDecoder,
  encodingFailure,
  type Failure,
  type FrameReader,
  identifyOutcome,
  isUnknownToPeer,
  peerTarget,
  type Reach,
  readFrames,
  type StreamOperation,
  type Transport,
  type TransportSetup,
  type UnaryOperation,
} from "./transport.ts";

/** The response, as far as it was received. */
interface Received {
  answer?: ExchangeAnswer;
  text?: string;
}

export function createHttpTransport(
  calling: ExchangeCalling,
  chosen: ChosenInterface,
  exchange: Exchanger,
  setup: TransportSetup,
): Transport {
  const { report, tracer } = setup;
  /** Set once the peer turned out to support streams only in the alternative form. */
  let prefersAlternative = false;

  const session =
    calling.sessions &&
    new PeerSession({
      calling: calling.sessions,
      target: () => peerTarget(chosen, setup),
      request,
      timeoutMs: setup.timeoutMs,
      authCode: setup.authCode,
    });

  async function encodeWithLogin(
    operation: Operation,
    settings: CallSettings,
    session: PeerSession,
  ): Promise<Attempt<ExchangeCall>> {
    const isMessage = operation.kind === "send" || operation.kind === "stream";
    const login = isMessage ? await session.loginId(settings.signal) : undefined;
    return login?.ok === false ? login : encode(operation, settings, login?.value);
  }

  function encode(operation: Operation, settings: CallSettings, loginId?: string): Attempt<ExchangeCall> {
    try {
      const target = callTarget(operation, settings, chosen, setup);
      const { losses, value } = calling.encode(operation, loginId === undefined ? target : { ...target, loginId });
      if (losses.length > 0) report(losses);
      const { body, headers, method, url } = value;
      const { signal, timeoutMs = setup.timeoutMs } = settings;
      return { ok: true, value: { method, url, headers, body, signal, timeoutMs } };
    } catch (error) {
      return encodingFailure(error);
    }
  }

  async function request<T>(call: ExchangeCall, decode: (answer: BufferedResponse) => T): Promise<Attempt<T>> {
    const received: Received = {};
    try {
      return { ok: true, value: decode(await readWhole(call, await begin(call, received), received)) };
    } catch (error) {
      return toFailure(error, call, received);
    }
  }

  function ask<O extends UnaryOperation>(operation: O, call: ExchangeCall): Promise<Attempt<OutcomeOf<O>>> {
    const make = (within: ExchangeCall) =>
      request(within, (answer) => {
        const { losses, value } = calling.decode(operation.kind, answer, operation);
        report(losses);
        return identifyOutcome(operation, value as OutcomeOf<O>);
      });
    return session === undefined ? make(call) : session.call(call, make);
  }

  async function begin(call: ExchangeCall, received: Received): Promise<ExchangeAnswer> {
    tracer?.request(call);
    received.answer = await exchange(call);
    return received.answer;
  }

  async function readWhole(call: ExchangeCall, answer: ExchangeAnswer, received: Received) {
    const text = await answer.text();
    received.text = text;
    tracer?.response(call, answer, text);
    return { status: answer.status, contentType: answer.headers.get("content-type") ?? "", text };
  }

  async function openOnce(
    operation: StreamOperation,
    call: ExchangeCall,
  ): Promise<Attempt<FrameReader> & { readonly noSuchRoute?: boolean }> {
    const received: Received = {};
    const decoder = createFrameDecoder(calling, operation);
    try {
      const answer = await begin(call, received);
      if (isSuccess(answer.status) && contentTypeOf(answer).startsWith("text/event-stream")) {
        tracer?.response(call, answer);
        return { ok: true, value: readFrames(answer, decoder, call, setup) };
      }
      // Instead of a stream, peers respond with an ordinary error, and some with the only frame of the stream.
      const whole = await readWhole(call, answer, received);
      if (!isSuccess(answer.status)) calling.decode(operation.kind === "stream" ? "send" : "get", whole, operation);
      if (isPage(answer, whole.text)) throw unexpectedPageError(whole.contentType);
      const { losses, value } = decoder.decode({ data: whole.text, event: "message", id: undefined });
      report(losses);
      return { ok: true, value: framesAsStream([...value, ...(decoder.end?.() ?? [])]) };
    } catch (error) {
      const failed = toFailure(error, call, received);
      return { ...failed, noSuchRoute: isNoSuchRoute(failed.error, received.answer?.status) };
    }
  }

  return {
    async attempt(operation, settings) {
      const encoded =
        session === undefined ? encode(operation, settings) : await encodeWithLogin(operation, settings, session);
      if (!encoded.ok) return encoded;
      const { value: call } = encoded;
      const usual = await ask(operation, call);
      const other = usual.ok || !isRejectedAsInvalid(usual.error) ? undefined : calling.alternative?.(call);
      if (usual.ok || other === undefined) return usual;
      const tried = await ask(operation, other);
      return tried.ok || !isRejectedAsInvalid(tried.error) ? tried : usual;
    },
    async open(operation, settings) {
      const encoded =
        session === undefined ? encode(operation, settings) : await encodeWithLogin(operation, settings, session);
      if (!encoded.ok) return encoded;
      const { value: call } = encoded;
      if (session !== undefined) return session.open(call, (within) => openOnce(operation, within));
      const other = calling.alternative?.(call);
      if (other === undefined) return openOnce(operation, call);
      if (prefersAlternative) return openOnce(operation, other);
      const usual = await openOnce(operation, call);
      if (usual.ok || usual.noSuchRoute !== true) return usual;
      const tried = await openOnce(operation, other);
      if (!tried.ok) return tried.noSuchRoute === true ? usual : tried;
      prefersAlternative = true;
      setup.notifyFallback(`The agent supports this only as ${other.method}, not as ${call.method}.`);
      return tried;
    },
  };
}

function toFailure(error: unknown, call: ExchangeCall, received: Received): Failure {
  if (!ProtocolError.is(error)) {
    const failed = toConnectionError(error, call);
    const reach = failedBeforeSending(failed) ? "untaken" : "unknown";
    return { ok: false, error: failed, transient: isTransient(failed), reach };
  }
  const status = received.answer?.status ?? 0;
  const failed = withRetryAfter(error, received.answer);
  // Server errors are reported by the status or, since JSON-RPC has no status, by an error code.
  const stumbled = failed.code === "INTERNAL_ERROR" || (status >= 500 && failed.code === "INVALID_AGENT_RESPONSE");
  return { ok: false, error: failed, transient: stumbled || isTransient(failed), reach: reachOf(failed, received) };
}

function reachOf(error: ProtocolError, { answer, text }: Received): Reach {
  if (isUnknownToPeer(error)) return "untaken";
  const status = answer?.status ?? 0;
  // An HTML page instead of a response is not from the agent. With a gateway error the agent may be behind it, though,
  // and a login page means that credentials are missing.
  return answer !== undefined && isPage(answer, text) && status < 500 && status !== 401 && status !== 403
    ? "untaken"
    : "unknown";
}

function isPage(answer: ExchangeAnswer, text = ""): boolean {
  return contentTypeOf(answer).startsWith("text/html") || /^\s*</.test(text);
}

const MAX_TYPE_LENGTH = 100;

function unexpectedPageError(contentType: string): ProtocolError {
  const type = contentType.slice(0, MAX_TYPE_LENGTH);
  return new ProtocolError(
    "INVALID_AGENT_RESPONSE",
    `The agent's answer cannot be read: it is a page (${type}), not a stream.`,
  );
}

function withRetryAfter(error: ProtocolError, answer: ExchangeAnswer | undefined): ProtocolError {
  const header = answer?.headers.get("retry-after");
  if (error.retryAfter !== undefined || header === null || header === undefined) return error;
  const retryAfter = Number(header);
  return Number.isFinite(retryAfter) && retryAfter >= 0 ? changeError(error, { retryAfter }) : error;
}

function isNoSuchRoute(error: Failure["error"], status: number | undefined): boolean {
  if (!ProtocolError.is(error)) return false;
  return status === 405 || ((status === 404 || status === 501) && error.code === "METHOD_NOT_FOUND");
}

/** The peer rejected the call as invalid, so it has done nothing. */
function isRejectedAsInvalid(error: Failure["error"]): boolean {
  if (!ProtocolError.is(error)) return false;
  return error.code === "INVALID_PARAMS" || error.code === "INVALID_REQUEST" || error.code === "METHOD_NOT_FOUND";
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function contentTypeOf(answer: ExchangeAnswer): string {
  return (answer.headers.get("content-type") ?? "").trim().toLowerCase();
}

function framesAsStream(all: readonly StreamFrame[]): FrameReader {
  async function* frames() {
    if (all.length > 0) yield all;
  }
  return { frames: frames(), awaitFirst: async () => undefined, cancel() {}, closeWithin() {} };
}
