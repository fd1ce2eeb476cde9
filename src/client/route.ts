/** Several interfaces of one agent: the one in use, and the others for when it fails. */
import type { Abilities } from "../dialects/contract.ts";
import { ProtocolError } from "../model/errors.ts";
import type { Operation, OperationKind } from "../model/operation.ts";
import type { Candidate } from "./choose-interface.ts";
import { ConnectionError } from "./errors.ts";
import { begun, type FrameReader } from "./frame-reader.ts";
import type { ChosenInterface, Notice } from "./options.ts";
import { type Attempt, type Failure, saysUnknown, type Transport } from "./transport.ts";

/** One interface. */
interface Line {
  readonly candidate: Candidate;
  readonly transport: Transport;
  /** The agent has answered on it, so that it is known to be spoken there. */
  proven: boolean;
}

interface Failed {
  readonly line: Line;
  readonly failure: Failure;
}

/** Operations that every agent knows. One that does not know these knows none, at least not by this interface. */
const ESSENTIAL: ReadonlySet<OperationKind> = new Set<OperationKind>(["send", "stream", "get", "cancel"]);

export class Lines {
  readonly #lines: readonly Line[];
  readonly #notify: (notice: Notice) => void;
  readonly #told = new Set<string>();
  #current: Line;

  constructor(
    candidates: readonly [Candidate, ...Candidate[]],
    transportOf: (candidate: Candidate) => Transport,
    notify: (notice: Notice) => void,
  ) {
    const toLine = (candidate: Candidate): Line => {
      return { candidate, transport: transportOf(candidate), proven: false };
    };
    const [first, ...others] = candidates;
    this.#current = toLine(first);
    this.#lines = [this.#current, ...others.map(toLine)];
    this.#notify = notify;
  }

  get interface(): ChosenInterface {
    return this.#current.candidate.interface;
  }

  get can(): Abilities {
    return this.#current.candidate.dialect.can;
  }

  get current(): Line {
    return this.#current;
  }

  /** From the one in use through all that come after it and around. */
  inOrder(): readonly Line[] {
    const at = this.#lines.indexOf(this.#current);
    return [...this.#lines.slice(at), ...this.#lines.slice(0, at)];
  }

  /** `line` answered after the others had failed. */
  settle(line: Line, failures: readonly Failed[], kind: OperationKind): void {
    const [first] = failures;
    if (first === undefined || line === this.#current) return;
    const { failure, line: left } = first;
    const lacksOnlyThis = isUnknownOperation(failure) && (left.proven || !ESSENTIAL.has(kind));
    const how = lacksOnlyThis ? `Using ${inWords(line)} for this.` : `Using ${inWords(line)} instead.`;
    if (!lacksOnlyThis) this.#current = line;
    const message = `${failures.map(({ failure: { error } }) => error.message).join(" ")} ${how}`;
    if (lacksOnlyThis && this.#told.has(message)) return;
    this.#told.add(message);
    this.#notify({ kind: "fallback", message });
  }
}

/** One call's way through the interfaces, over as many rounds as its retries take. */
export class Route {
  readonly #lines: Lines;
  /** Given up for this call, and why. */
  readonly #left = new Map<Line, Failure>();
  /** The one that answered last, or may have. */
  #last: Line | undefined;

  constructor(lines: Lines) {
    this.#lines = lines;
  }

  /** Tries the interface in use and, where a failure shows that the agent took nothing, the others. */
  async run<T>(
    operation: Operation,
    signal: AbortSignal,
    attempt: (transport: Transport, isProven: boolean) => Promise<Attempt<T>>,
  ): Promise<Attempt<T>> {
    const failures: Failed[] = [...this.#left].map(([line, failure]) => ({ line, failure }));
    this.#last = undefined;
    for (const line of this.#remaining()) {
      const made = await attempt(line.transport, line.proven);
      if (made.ok || (isFinal(made, failures) && !this.#mayBeAnotherDialect(line, made))) {
        if (made.ok || isUnderstood(made)) {
          line.proven = true;
          // A request that is invalid here may be invalid there as well.
          if (made.ok || !failures.some(({ failure }) => isInvalidRequest(failure))) {
            this.#lines.settle(line, failures, operation.kind);
          }
        }
        this.#last = line;
        return made;
      }
      failures.push({ line, failure: made });
      if (signal.aborted) break;
    }
    return together(failures);
  }

  /** Like `run`; a stream whose first word is that the peer does not know the call has not been opened. */
  open(
    operation: Operation,
    signal: AbortSignal,
    open: (transport: Transport) => Promise<Attempt<FrameReader>>,
  ): Promise<Attempt<FrameReader>> {
    return this.run(operation, signal, async (transport, isProven) => {
      const opened = await open(transport);
      return opened.ok && !isProven && this.#remaining().length > 1 ? lookedInto(opened.value) : opened;
    });
  }

  /**
   * Gives up the interface that was tried last, for calls that are safe to repeat elsewhere although the agent may have
   * taken them. False when there is no other left, or when the failure says nothing against the interface.
   */
  leave(error: Failure["error"]): boolean {
    if (!ConnectionError.is(error) || error.permanent || this.#last === undefined) return false;
    if (error.code !== "unreachable" && error.code !== "broken-stream") return false;
    this.#left.set(this.#last, { ok: false, error, transient: true, reach: "unknown" });
    return this.#remaining().length > 0;
  }

  /** Early servers call every request invalid whose method they do not know. */
  #mayBeAnotherDialect(line: Line, failure: Failure): boolean {
    if (line.proven || !isInvalidRequest(failure)) return false;
    return this.#lines.inOrder().some(({ candidate }) => candidate.dialect !== line.candidate.dialect);
  }

  #remaining(): readonly Line[] {
    return this.#lines.inOrder().filter((line) => !this.#left.has(line));
  }
}

/** Whether nothing else is to be tried: the agent may have taken it, or the dialect in use cannot say it. */
function isFinal({ reach }: Failure, failures: readonly Failed[]): boolean {
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

/** Whatever else goes wrong on a stream is for its reader. */
async function lookedInto(opened: FrameReader): Promise<Attempt<FrameReader>> {
  const { failure, reader } = await begun(opened);
  if (!ProtocolError.is(failure) || !saysUnknown(failure)) return { ok: true, value: reader };
  return { ok: false, error: failure, transient: false, reach: "untaken" };
}

/** The first failure is the one to report; that of the interface the card prefers. The others are told beside it. */
function together(failures: readonly Failed[]): Failure {
  const [first, ...others] = failures;
  if (first === undefined) throw new Error("A call was made without an interface.");
  if (others.length === 0) return first.failure;
  const why = codeOf(first.failure);
  const also = others.map(({ failure, line }) =>
    codeOf(failure) === why ? `${inWords(line)}.` : `${inWords(line)}: ${failure.error.message}`,
  );
  return {
    ok: false,
    error: withMore(first.failure.error, ` Also tried: ${also.join(" ")}`),
    transient: failures.some(({ failure }) => failure.transient),
    reach: "untaken",
  };
}

/** One reason for all of them need be read only once. */
function codeOf({ error }: Failure): string {
  return error.code;
}

function withMore(error: Failure["error"], more: string): Failure["error"] {
  const message = `${error.message}${more}`;
  if (ConnectionError.is(error)) {
    const { code, permanent } = error;
    return new ConnectionError(code, message, { cause: error, permanent });
  }
  const { code, data, metadata, retryAfter, violations } = error;
  return new ProtocolError(code, message, {
    cause: error,
    ...(metadata === undefined ? {} : { metadata }),
    ...(violations === undefined ? {} : { violations }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(data === undefined ? {} : { data }),
  });
}

function inWords({ candidate }: Line): string {
  const { binding, version } = candidate.interface;
  return `${binding} ${version}`;
}
