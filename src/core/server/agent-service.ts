import type { AgentService } from "../dialects/contract.ts";
import type { Engine } from "../engine/engine.ts";
import type { Caller } from "../model/caller.ts";
import type { AgentCard, AgentInterface, AgentProfile } from "../model/card.ts";
import { isTemporary, ProtocolError } from "../model/errors.ts";
import type { CallContext, FrameStream, Operation, OutcomeOf, StreamFrame } from "../model/operation.ts";
import { type Clock, type IdGenerator, type Log, MAX_TIMER_MS } from "../model/ports.ts";
import { describeStoreError } from "../store/contract.ts";
import { pipeFrames } from "../wire/pipe-frames.ts";
import type { Admission } from "./access/admission.ts";
import type { Authentication } from "./access/authentication.ts";
import { requireScopes } from "./access/skill-scopes.ts";
import { type AuditLog, toCallRecord } from "./audit/audit-log.ts";
import {
  type AuditSubject,
  assignPushConfigId,
  auditFrames,
  subjectOfOutcome,
  subjectOfRequest,
} from "./audit/audited-operation.ts";
import { activatedExtensions, toAgentCard, toExtendedCard } from "./cards/agent-card.ts";
import type { CardSigner } from "./cards/signing-keys.ts";

/** Ends a stream when its caller's credentials expire; a caller with newer ones resumes where it ended. */
function expireFrames(source: FrameStream, clock: Clock, expires: number): FrameStream {
  const frames = source[Symbol.asyncIterator]();
  const left = Math.min(Math.max(expires - clock.now(), 0), MAX_TIMER_MS);
  const stopTimer = clock.after(left, () => void frames.return?.());
  return pipeFrames(frames, { map: (batch: readonly StreamFrame[]) => batch, onClose: stopTimer });
}

interface AgentServiceOptions {
  readonly name: string;
  readonly engine: Engine;
  readonly log: Log;
  readonly ids: IdGenerator;
  readonly clock: Clock;
  readonly interfaces: () => readonly AgentInterface[];
  readonly authentication: Pick<Authentication, "identifies" | "security" | "challenged">;
  /** Absent: requests are not limited. */
  readonly admission?: Admission;
  readonly audit?: AuditLog | undefined;
  /** Absent: cards are not signed. */
  readonly sign?: CardSigner | undefined;
}

/** One agent of the engine, as the dialects see it. */
export class ServedAgentService implements AgentService {
  readonly name: string;
  readonly #options: AgentServiceOptions;
  readonly #agent: ReturnType<Engine["agent"]>;
  #shown: { readonly profile: AgentProfile; readonly card: AgentCard } | undefined;

  constructor(options: AgentServiceOptions) {
    this.name = options.name;
    this.#options = options;
    this.#agent = options.engine.agent(options.name);
  }

  get profile(): AgentProfile {
    return this.#agent.profile;
  }

  /** Made again when the profile is another object: the agent was replaced, or describes itself differently. */
  get card(): AgentCard {
    const { profile } = this;
    if (this.#shown?.profile === profile) return this.#shown.card;
    const { authentication, engine, interfaces } = this.#options;
    const card = this.#sign(toAgentCard(profile, interfaces(), { ...authentication, push: engine.push }));
    this.#shown = { profile, card };
    return card;
  }

  #sign(card: AgentCard): AgentCard {
    return this.#options.sign?.(card) ?? card;
  }

  activate(requested: readonly string[]): readonly string[] {
    return activatedExtensions(this.card, requested);
  }

  dispatch<O extends Operation>(operation: O, call: CallContext): Promise<OutcomeOf<O>> {
    const { audit } = this.#options;
    return audit === undefined ? this.#perform(operation, call) : this.#audited(audit, operation, call);
  }

  async #audited<O extends Operation>(audit: AuditLog, operation: O, call: CallContext): Promise<OutcomeOf<O>> {
    audit.assertWritable();
    const { caller, dialect } = call;
    const began = audit.now();
    const named = assignPushConfigId(operation, () => this.#options.ids.pushConfig());
    const requested = subjectOfRequest(named);
    const record = (result: string, subject: AuditSubject) => {
      const duration = audit.now() - began;
      const { kind } = operation;
      audit.record(toCallRecord({ caller, agent: this.name, dialect, operation: kind, ...subject, result, duration }));
    };
    try {
      const outcome = await this.#perform(named, call);
      if (operation.kind === "stream" || operation.kind === "subscribe") {
        // `dispatch` relates an outcome to its operation, which the compiler cannot follow through a union.
        const frames = outcome as FrameStream;
        const onFirstFrame = (task: string | undefined) => record("OK", { ...requested, task: requested.task ?? task });
        return auditFrames(frames, onFirstFrame) as OutcomeOf<O>;
      }
      record("OK", subjectOfOutcome(requested, operation.kind, outcome));
      return outcome;
    } catch (error) {
      record(ProtocolError.is(error) ? error.code : "INTERNAL_ERROR", requested);
      throw error;
    }
  }

  async #perform<O extends Operation>(operation: O, call: CallContext): Promise<OutcomeOf<O>> {
    const { admission, authentication, clock, log } = this.#options;
    admission?.startRequest(call.caller);
    try {
      if (operation.kind === "send" || operation.kind === "stream") {
        const pending = requireScopes(this.profile, operation, call.caller);
        if (pending !== undefined) await pending;
      }
      if (operation.kind === "extended-card") return (await this.#extendedCard(call)) as OutcomeOf<O>;
      const outcome = await this.#agent.dispatch(operation, call);
      const { expires } = call.caller;
      if (expires === undefined || (operation.kind !== "stream" && operation.kind !== "subscribe")) return outcome;
      return expireFrames(outcome as FrameStream, clock, expires) as OutcomeOf<O>;
    } catch (error) {
      if (ProtocolError.is(error)) throw authentication.challenged(error, this.name);
      if (isTemporary(error)) {
        log.warn({ err: error, agent: this.name, operation: operation.kind }, "The store could not be reached.");
        const message = `Nothing can be read or stored: ${describeStoreError(error)}.`;
        throw new ProtocolError("UNAVAILABLE", message, { cause: error, retryAfter: 1 });
      }
      log.error({ err: error, agent: this.name, operation: operation.kind }, "An operation failed unexpectedly.");
      throw new ProtocolError("INTERNAL_ERROR", "Something went wrong on our side.", { cause: error });
    } finally {
      admission?.endRequest(call.caller);
    }
  }

  originOf(taskId: string, caller: Caller): Promise<string | undefined> {
    return this.#options.engine.findTaskDialect(this.name, taskId, caller);
  }

  async #extendedCard(call: CallContext): Promise<AgentCard> {
    const { extended } = this.profile;
    const { identifies, security } = this.#options.authentication;
    if (extended === undefined || !identifies) {
      throw new ProtocolError("UNSUPPORTED_OPERATION", "This agent has no extended card.");
    }
    if (!call.caller.authenticated) {
      throw new ProtocolError("UNAUTHENTICATED", "The extended card is for authenticated callers.");
    }
    const shown = typeof extended === "function" ? await extended(call.caller) : extended;
    if (shown?.description === undefined && shown?.skills === undefined) {
      throw new ProtocolError("EXTENDED_AGENT_CARD_NOT_CONFIGURED", "No extended card is configured.");
    }
    return this.#sign(toExtendedCard(this.card, shown, security));
  }
}
