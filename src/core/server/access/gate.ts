import { isPromise, type RequestCredentials } from "../../auth/verify/contract.ts";
import type { AgentService, ServeContext, ServeLimits } from "../../dialects/contract.ts";
import type { Caller } from "../../model/caller.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { Loss } from "../../model/loss.ts";
import type { IdGenerator } from "../../model/ports.ts";
import { readTrace } from "../../model/trace.ts";
import { type AuditLog, toCallRecord } from "../audit/audit-log.ts";
import { type Admission, OwnerLimitError } from "./admission.ts";
import type { Authentication } from "./authentication.ts";

interface GateOptions {
  readonly authentication: Pick<Authentication, "authenticate" | "challenged">;
  readonly admission: Admission;
  readonly audit: Pick<AuditLog, "record"> | undefined;
  readonly agents: ReadonlyMap<string, AgentService>;
  /** Answers requests that name no agent. */
  readonly defaultAgent: AgentService;
  readonly limits: ServeLimits;
  /** Throws LOSS_REFUSED if losses are not allowed. */
  readonly report: (dialect: string, losses: readonly Loss[]) => void;
  readonly ids: IdGenerator;
}

/** The caller, or why the request is refused. */
export type Verdict = Caller | ProtocolError;

/** The agent that a request addresses, as far as the URL tells. */
export interface Addressee {
  readonly service: AgentService | undefined;
  /** False if the URL names no agent, and the default agent answers. */
  readonly isNamed: boolean;
}

/**
 * The checks that every request passes on any carrier: rate of its address, credentials, rate of its owner. Audits
 * refusals. Synchronous unless the check of credentials is not.
 */
export class Gate {
  readonly limits: ServeLimits;
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
    this.limits = options.limits;
  }

  /** Why a request is refused because of its address, before anything else is examined; undefined for most. */
  checkAddress(address: string | undefined, agent: string | undefined, dialect: string): ProtocolError | undefined {
    const error = this.#options.admission.checkAddress(address);
    return error && this.refuse(error, address, agent, dialect);
  }

  /** A preliminary check, before much of a request is read. Not counted: `admit` follows. */
  screen(presented: RequestCredentials, to: Addressee | undefined, dialect: string): Verdict | Promise<Verdict> {
    return this.#authenticate(presented, to, dialect, false);
  }

  /** Counts the request for its owner. `to` is undefined if the agent is named in a message that was not read. */
  admit(presented: RequestCredentials, to: Addressee | undefined, dialect: string): Verdict | Promise<Verdict> {
    return this.#authenticate(presented, to, dialect, true);
  }

  /** Counts a request whose caller is authenticated by the dialect itself. Throws if it is refused. */
  admitBy<T extends { readonly caller: Caller }>(
    check: () => T,
    address: string | undefined,
    agent: string,
    dialect: string,
  ): T {
    try {
      const found = check();
      return { ...found, caller: this.#options.admission.admit(found.caller, address) };
    } catch (error) {
      throw ProtocolError.is(error) ? this.refuse(error, address, agent, dialect) : error;
    }
  }

  /** Counts one message of a caller that its carrier has authenticated, like a request. Throws if it is refused. */
  enter(caller: Caller, agent: string, dialect: string): ServeContext {
    const service = this.#options.agents.get(agent);
    if (service === undefined) throw new ProtocolError("METHOD_NOT_FOUND", "Agent not found.");
    const admitted = this.admitBy(() => ({ caller }), caller.address, agent, dialect);
    return this.contextFor(admitted.caller, service, dialect);
  }

  /** For a caller that was admitted. */
  contextFor(caller: Caller, service: AgentService | undefined, dialect: string): ServeContext {
    const { agents, defaultAgent, limits, report, ids } = this.#options;
    const agent = service ?? defaultAgent;
    return {
      service: agent,
      report: (losses) => report(dialect, losses),
      ids,
      caller,
      limits,
      // Below /agents/NAME the path has already selected the agent; the same name is not another partition.
      agentOfTenant: (tenant) => (agent === defaultAgent || tenant === agent.name ? agents.get(tenant) : undefined),
    };
  }

  #authenticate(
    presented: RequestCredentials,
    to: Addressee | undefined,
    dialect: string,
    isCounted: boolean,
  ): Verdict | Promise<Verdict> {
    const { authentication, admission } = this.#options;
    try {
      const admit = (known: Caller) => withTrace(admission.admit(known, presented.remoteAddress), presented);
      const caller = authentication.authenticate(presented);
      if (!isPromise(caller)) return isCounted ? admit(caller) : caller;
      return caller
        .then((known) => (isCounted ? admit(known) : known))
        .catch((error: unknown) => this.#challenge(error, presented, to, dialect));
    } catch (error) {
      return this.#challenge(error, presented, to, dialect);
    }
  }

  #challenge(
    error: unknown,
    { remoteAddress }: RequestCredentials,
    to: Addressee | undefined,
    dialect: string,
  ): ProtocolError {
    if (!ProtocolError.is(error)) throw error;
    const name = to?.service?.name;
    this.refuse(error, remoteAddress, name, dialect);
    return this.#options.authentication.challenged(error, to?.isNamed === true ? name : undefined);
  }

  /** Audits a refusal that was decided elsewhere. */
  refuse(error: ProtocolError, address: string | undefined, agent: string | undefined, dialect: string): ProtocolError {
    const known = error instanceof OwnerLimitError && { caller: error.caller };
    const refusal = { ...known, address, agent, dialect, operation: "authenticate", result: error.code };
    this.#options.audit?.record(toCallRecord(refusal));
    return error;
  }
}

function withTrace(caller: Caller, { headers }: RequestCredentials): Caller {
  const trace = headers.traceparent === undefined ? undefined : readTrace(headers);
  return trace === undefined ? caller : { ...caller, trace };
}
