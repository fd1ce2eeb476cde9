import { isPromise, type RequestCredentials } from "../../auth/verify/contract.ts";
import type { AgentService, ServeContext, ServeLimits } from "../../dialects/contract.ts";
import type { Caller } from "../../model/caller.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { Loss } from "../../model/loss.ts";
import type { IdGenerator } from "../../model/ports.ts";
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
  /** Throws LOSS_REFUSED where nothing may be lost. */
  readonly report: (dialect: string, losses: readonly Loss[]) => void;
  readonly ids: IdGenerator;
}

/** Who calls, or why the request is refused. */
export type Verdict = Caller | ProtocolError;

/** The agent that a request is for, as far as its address says. */
export interface Addressee {
  readonly service: AgentService | undefined;
  /** False where the address names none, and the default agent answers. */
  readonly isNamed: boolean;
}

/**
 * What every request passes, over whatever carrier it comes: the rate of its address, its credentials, the rate of its
 * owner. Refusals are audited here. Nothing waits unless a check of credentials has to.
 */
export class Gate {
  readonly limits: ServeLimits;
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
    this.limits = options.limits;
  }

  /** Why a request is refused for where it comes from, before anything else of it is looked at; undefined for most. */
  checkAddress(address: string | undefined, agent: string | undefined, dialect: string): ProtocolError | undefined {
    const error = this.#options.admission.checkAddress(address);
    return error && this.refuse(error, address, agent, dialect);
  }

  /** A first look, before much of a request is read. Not counted: `admit` follows. */
  screen(presented: RequestCredentials, to: Addressee | undefined, dialect: string): Verdict | Promise<Verdict> {
    return this.#authenticate(presented, to, dialect, false);
  }

  /** Counts the request for its owner. `to` is undefined where the agent is named in a message that was not read. */
  admit(presented: RequestCredentials, to: Addressee | undefined, dialect: string): Verdict | Promise<Verdict> {
    return this.#authenticate(presented, to, dialect, true);
  }

  /** Counts a request whose caller a dialect recognises by a check of its own. Throws why it is refused. */
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

  /** For one message of a caller that its carrier has recognised: counted, like a request. Throws why it is refused. */
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
      // Below /agents/NAME the path has chosen already; the name again is no other partition.
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
      const caller = authentication.authenticate(presented);
      if (!isPromise(caller)) return isCounted ? admission.admit(caller, presented.remoteAddress) : caller;
      return caller
        .then((known) => (isCounted ? admission.admit(known, presented.remoteAddress) : known))
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

  /** Audits a refusal, for those that are decided elsewhere. */
  refuse(error: ProtocolError, address: string | undefined, agent: string | undefined, dialect: string): ProtocolError {
    const known = error instanceof OwnerLimitError && { caller: error.caller };
    const refusal = { ...known, address, agent, dialect, operation: "authenticate", result: error.code };
    this.#options.audit?.record(toCallRecord(refusal));
    return error;
  }
}
