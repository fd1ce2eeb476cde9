/** Failover between the interfaces of one agent. */

import type { Abilities } from "../../dialects/contract.ts";
import type { Signal } from "../../model/abort.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { Operation, OperationKind } from "../../model/operation.ts";
import type { Candidate } from "../card/choose-interface.ts";
import { ConnectionError, changeError } from "../errors.ts";
import type { ChosenInterface, Notice } from "../options.ts";
import {
  type Attempt,
  type CallSettings,
  type Failure,
  type FrameReader,
  isUnknownToPeer,
  type StreamOperation,
  type Transport,
} from "../transport/transport.ts";

interface Endpoint {
  readonly candidate: Candidate;
  readonly transport: Transport;
  /** The agent has responded on it, so it is known to support the dialect. */
  hasAnswered: boolean;
}

interface FailedEndpoint {
  readonly endpoint: Endpoint;
  readonly failure: Failure;
}

/** Operations that every agent supports. If one of these is unknown, the agent supports none on this interface. */
const ESSENTIAL: ReadonlySet<OperationKind> = new Set<OperationKind>(["send", "stream", "get", "cancel"]);

export class Endpoints {
  readonly #endpoints: readonly Endpoint[];
  readonly #notify: (notice: Notice) => void;
  readonly #notified = new Set<string>();
  #current: Endpoint;

  constructor(
    candidates: readonly [Candidate, ...Candidate[]],
    transportOf: (candidate: Candidate) => Transport,
    notify: (notice: Notice) => void,
  ) {
    const toEndpoint = (candidate: Candidate): Endpoint => {
      return { candidate, transport: transportOf(candidate), hasAnswered: false };
    };
    const [first, ...others] = candidates;
    this.#current = toEndpoint(first);
    this.#endpoints = [this.#current, ...others.map(toEndpoint)];
    this.#notify = notify;
  }

  get interface(): ChosenInterface {
    return this.#current.candidate.interface;
  }

  get can(): Abilities {
    return this.#current.candidate.dialect.can;
  }

  /** All interfaces, beginning with the one in use and wrapping around. */
  inOrder(): readonly Endpoint[] {
    if (this.#endpoints[0] === this.#current) return this.#endpoints;
    const at = this.#endpoints.indexOf(this.#current);
    return [...this.#endpoints.slice(at), ...this.#endpoints.slice(0, at)];
  }

  /** Called when `endpoint` responded after the others had failed. */
  switchTo(endpoint: Endpoint, failures: readonly FailedEndpoint[], kind: OperationKind): void {
    const [first] = failures;
    if (first === undefined || endpoint === this.#current) return;
    const { failure, endpoint: left } = first;
    const lacksOnlyThis = isUnknownOperation(failure) && (left.hasAnswered || !ESSENTIAL.has(kind));
    if (!lacksOnlyThis) this.#current = endpoint;
    const reasons = failures.map(({ failure: { error } }) => error.message).join(" ");
    const message = `${reasons} Using ${describeEndpoint(endpoint)} ${lacksOnlyThis ? "for this" : "instead"}.`;
    if (lacksOnlyThis && this.#notified.has(message)) return;
    this.#notified.add(message);
    this.#notify({ kind: "fallback", message });
  }
}

/** Failover of one call, over all rounds of its retries. */
export class Failover {
  readonly #endpoints: Endpoints;
  /** Interfaces given up for this call, and why. */
  #left: Map<Endpoint, Failure> | undefined;
  /** The interface that last responded, or may have. */
  #last: Endpoint | undefined;

  constructor(endpoints: Endpoints) {
    this.#endpoints = endpoints;
  }

  /** Tries the interface in use and, if a failure shows that the agent received nothing, the others. */
  async run<T>(
    operation: Operation,
    signal: Signal,
    attempt: (transport: Transport, isProven: boolean) => Promise<Attempt<T>>,
  ): Promise<Attempt<T>> {
    const failures: FailedEndpoint[] = [];
    for (const [endpoint, failure] of this.#left ?? []) failures.push({ endpoint, failure });
    this.#last = undefined;
    for (const endpoint of this.#remaining()) {
      const made = await attempt(endpoint.transport, endpoint.hasAnswered);
      if (made.ok || (isFinal(made, failures) && !this.#mayBeAnotherDialect(endpoint, made))) {
        if (made.ok || isUnderstood(made)) {
          endpoint.hasAnswered = true;
          // A request that is invalid on one interface may be invalid on the next as well.
          if (made.ok || !failures.some(({ failure }) => isInvalidRequest(failure))) {
            this.#endpoints.switchTo(endpoint, failures, operation.kind);
          }
        }
        this.#last = endpoint;
        return made;
      }
      failures.push({ endpoint, failure: made });
      if (signal.aborted) break;
    }
    return combineFailures(failures);
  }

  /** Like `run`; a stream whose first frame is an unknown-method error counts as not opened. */
  open(operation: StreamOperation, settings: CallSettings): Promise<Attempt<FrameReader>> {
    return this.run(operation, settings.signal, async (transport, isProven) => {
      const opened = await transport.open(operation, settings);
      return opened.ok && !isProven && this.#remaining().length > 1 ? checkFirstFrames(opened.value) : opened;
    });
  }

  /**
   * Gives up the interface that was tried last, for calls that are safe to repeat elsewhere although the agent may have
   * received them. False if no other interface is left, or if the failure is not caused by the interface.
   */
  giveUpLast(error: Failure["error"]): boolean {
    if (!ConnectionError.is(error) || error.permanent || this.#last === undefined) return false;
    if (error.code !== "unreachable" && error.code !== "broken-stream") return false;
    this.#left ??= new Map();
    this.#left.set(this.#last, { ok: false, error, transient: true, reach: "unknown" });
    return this.#remaining().length > 0;
  }

  /** Legacy servers report an unknown method as an invalid request. */
  #mayBeAnotherDialect(endpoint: Endpoint, failure: Failure): boolean {
    if (endpoint.hasAnswered || !isInvalidRequest(failure)) return false;
    return this.#endpoints.inOrder().some(({ candidate }) => candidate.dialect !== endpoint.candidate.dialect);
  }

  #remaining(): readonly Endpoint[] {
    const left = this.#left;
    const all = this.#endpoints.inOrder();
    return left === undefined ? all : all.filter((endpoint) => !left.has(endpoint));
  }
}

/** Whether to stop trying: the agent may have received the call, or the dialect in use cannot express it. */
function isFinal({ reach }: Failure, failures: readonly FailedEndpoint[]): boolean {
  return reach === "unknown" || (reach === "unsaid" && failures.length === 0);
}

function isUnderstood({ error, reach, transient }: Failure): boolean {
  return reach === "unknown" && !transient && ProtocolError.is(error) && error.code !== "INVALID_AGENT_RESPONSE";
}

function isInvalidRequest({ error }: Failure): boolean {
  return ProtocolError.is(error) && error.code === "INVALID_REQUEST";
}

function isUnknownOperation({ error }: Failure): boolean {
  return ProtocolError.is(error) && error.code !== "VERSION_NOT_SUPPORTED";
}

/** All other failures of a stream are left to its reader. */
async function checkFirstFrames(reader: FrameReader): Promise<Attempt<FrameReader>> {
  const failure = await reader.awaitFirst();
  if (!ProtocolError.is(failure) || !isUnknownToPeer(failure)) return { ok: true, value: reader };
  return { ok: false, error: failure, transient: false, reach: "untaken" };
}

/** Reports the first failure, that of the interface the card prefers; the others are appended to its message. */
function combineFailures(failures: readonly FailedEndpoint[]): Failure {
  const [first, ...others] = failures;
  if (first === undefined) throw new Error("A call was made without an interface.");
  if (others.length === 0) return first.failure;
  // A reason that all interfaces share is reported only once.
  const also = others.map(({ failure: { error }, endpoint }) =>
    error.code === first.failure.error.code
      ? `${describeEndpoint(endpoint)}.`
      : `${describeEndpoint(endpoint)}: ${error.message}`,
  );
  return {
    ok: false,
    error: appendToMessage(first.failure.error, ` Also tried: ${also.join(" ")}`),
    transient: failures.some(({ failure }) => failure.transient),
    reach: "untaken",
  };
}

function appendToMessage(error: Failure["error"], more: string): Failure["error"] {
  const message = `${error.message}${more}`;
  if (ConnectionError.is(error)) {
    const { code, permanent } = error;
    return new ConnectionError(code, message, { cause: error, permanent });
  }
  return changeError(error, { message, cause: error });
}

function describeEndpoint({ candidate }: Endpoint): string {
  const { binding, version } = candidate.interface;
  return `${binding} ${version}`;
}
