/**
 * Sessions that a peer requires before it accepts calls: opened when the peer requests one, shared by all calls, and
 * reopened when the peer no longer accepts it.
 */

import type { BufferedResponse, CallTarget, SessionCalling } from "../../dialects/contract.ts";
import type { Signal } from "../../model/abort.ts";
import { ProtocolError } from "../../model/errors.ts";
import { CarrierError, type ExchangeCall } from "../../wire/exchange.ts";
import { toConnectionError } from "../errors.ts";
import { SharedRequest } from "./shared-request.ts";
import type { Attempt, Failure, FrameReader } from "./transport.ts";

interface SessionSetup {
  readonly calling: SessionCalling;
  readonly target: () => CallTarget;
  /** Makes one request and decodes the response. Never rejects. */
  readonly request: <T>(call: ExchangeCall, decode: (answer: BufferedResponse) => T) => Promise<Attempt<T>>;
  readonly timeoutMs: number;
  readonly authCode: string | undefined;
}

export class PeerSession {
  readonly #setup: SessionSetup;
  readonly #opening: SharedRequest<Attempt<string>>;
  readonly #loggingIn: SharedRequest<Attempt<string>>;
  #id: string | undefined;
  #loginId: string | undefined;

  constructor(setup: SessionSetup) {
    this.#setup = setup;
    this.#opening = new SharedRequest((signal) => this.#openSession(signal));
    this.#loggingIn = new SharedRequest((signal) => this.#logIn(signal));
  }

  /** Makes a call in the current session. If the peer requires a new one, opens it and repeats the call once. */
  async call<T>(call: ExchangeCall, make: (call: ExchangeCall) => Promise<Attempt<T>>): Promise<Attempt<T>> {
    const used = this.#id;
    const first = await make(this.#within(call, used));
    if (first.ok || !this.#isRequired(first.error)) return first;
    const opened = await this.#renew(used, call);
    if (!opened.ok) return sessionNotOpened(first, opened);
    const second = await make(this.#within(call, opened.value));
    if (second.ok || !this.#isRequired(second.error)) return second;
    return unauthenticatedFailure(
      `The agent does not accept the session that it has just opened: ${second.error.message}`,
    );
  }

  /** Like `call`. A stream whose first frame requests a session counts as not opened. */
  open(call: ExchangeCall, open: (call: ExchangeCall) => Promise<Attempt<FrameReader>>): Promise<Attempt<FrameReader>> {
    return this.call(call, async (within) => {
      const opened = await open(within);
      if (!opened.ok) return opened;
      const failure = await opened.value.awaitFirst();
      if (!ProtocolError.is(failure) || !this.#isRequired(failure)) return opened;
      return { ok: false, error: failure, transient: false, reach: "unknown" };
    });
  }

  /** The login id for messages; undefined without an `authCode`. */
  async loginId(signal: Signal): Promise<Attempt<string | undefined>> {
    if (this.#setup.authCode === undefined || this.#loginId !== undefined) return { ok: true, value: this.#loginId };
    return joinOrLeave(this.#loggingIn, { signal, method: "POST", url: this.#setup.target().url });
  }

  /** `refused` is the session that the peer rejected; another call may have opened a new one since. */
  async #renew(refused: string | undefined, call: ExchangeCall): Promise<Attempt<string>> {
    if (this.#id !== undefined && this.#id !== refused) return { ok: true, value: this.#id };
    return joinOrLeave(this.#opening, call);
  }

  async #openSession(signal: Signal): Promise<Attempt<string>> {
    const { calling, request, target, timeoutMs } = this.#setup;
    const bounds = { signal, timeoutMs };
    const opened = await request({ ...calling.encodeOpen(target()), ...bounds }, calling.decodeOpen);
    if (!opened.ok) return opened;
    const confirmation = this.#within({ ...calling.encodeOpened(target()), ...bounds }, opened.value);
    // A peer that rejects this step does not need it; the next call shows whether the session is valid.
    await request(confirmation, () => undefined);
    this.#id = opened.value;
    return opened;
  }

  async #logIn(signal: Signal): Promise<Attempt<string>> {
    const { authCode = "", calling, request, target, timeoutMs } = this.#setup;
    const call = { ...calling.encodeLogin(target(), authCode), signal, timeoutMs };
    const made = await this.call(call, (within) => request(within, calling.decodeLogin));
    if (made.ok) this.#loginId = made.value;
    else if (ProtocolError.is(made.error) && !made.transient) {
      return unauthenticatedFailure(`The agent does not accept the login: ${made.error.message}`);
    }
    return made;
  }

  #within(call: ExchangeCall, id: string | undefined): ExchangeCall {
    if (id === undefined) return call;
    return { ...call, headers: { ...call.headers, [this.#setup.calling.header]: id } };
  }

  #isRequired(error: Failure["error"]): boolean {
    return ProtocolError.is(error) && this.#setup.calling.isRequiredBy(error);
  }
}

function unauthenticatedFailure(message: string): Failure {
  return { ok: false, error: new ProtocolError("UNAUTHENTICATED", message), transient: false, reach: "unknown" };
}

/** The message contains both errors: why the call was rejected, and why no session could be opened. */
function sessionNotOpened(first: Failure, opened: Failure): Failure {
  if (!ProtocolError.is(opened.error)) return opened;
  const { message: why } = opened.error;
  const { message } = first.error;
  const sentence = /[.!?。！]$/.test(message) ? message : `${message}.`;
  const both = why === message ? message : `${sentence} No session could be opened: ${why}`;
  if (!opened.transient) return unauthenticatedFailure(both);
  const { code, retryAfter } = opened.error;
  const error = new ProtocolError(code, both, { ...(retryAfter === undefined ? {} : { retryAfter }) });
  return { ...opened, error };
}

type SharedCall = Pick<ExchangeCall, "method" | "signal" | "url">;

/** The request itself never rejects. */
function joinOrLeave(request: SharedRequest<Attempt<string>>, call: SharedCall): Promise<Attempt<string>> {
  return request.join(call.signal).catch(() => abortedFailure(call));
}

function abortedFailure(call: SharedCall): Failure {
  const error = toConnectionError(new CarrierError("aborted", "The call was aborted"), call);
  return { ok: false, error, transient: false, reach: "unknown" };
}
