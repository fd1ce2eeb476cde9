import type { PushTry } from "../engine/push-sender.ts";
import type { Caller } from "../model/caller.ts";
import type { Redelivered } from "../store/contract.ts";

/** One line of the audit log, without its time. What is undefined is left out. */
export type AuditRecord = Readonly<Record<string, string | number | boolean | undefined>>;

export interface AuditedCall {
  /** Absent for a caller who was not recognised. */
  readonly caller?: Caller;
  readonly address?: string | undefined;
  /** Absent where the request was not read as far as that. */
  readonly agent?: string | undefined;
  readonly dialect: string;
  readonly operation: string;
  readonly task?: string | undefined;
  /** Id of the push config it is about. */
  readonly config?: string | undefined;
  /** `OK` or the code of the error. */
  readonly result: string;
  /** Milliseconds. */
  readonly duration?: number;
}

/** Who uses a command beside the server. */
export interface Operator {
  readonly user: string;
  readonly machine: string;
}

/** Of an id that a caller made up. */
const LONGEST_TEXT = 256;

const DELIVERY_RESULTS = {
  delivered: "OK",
  failed: "FAILED",
  "given-up": "GIVEN_UP",
} as const satisfies Record<PushTry["result"], string>;

/** Who did what to which task, from where, and how it ended. Neither contents nor anything secret. */
export function recordOfCall(call: AuditedCall): AuditRecord {
  const { caller, address, agent, dialect, operation, task, config, result, duration } = call;
  return {
    owner: caller?.owner,
    authenticated: caller?.authenticated ?? false,
    address: caller?.address ?? address,
    agent,
    dialect,
    operation,
    task: shortened(task),
    config: shortened(config),
    result,
    ms: duration,
  };
}

/** What the server did for the owner of a push config. Of the address only the host: owners may keep secrets in the rest. */
export function recordOfDelivery({ config, scope, host, event, attempt, result, reason }: PushTry): AuditRecord {
  return {
    owner: scope.owner,
    agent: scope.agent,
    dialect: config.dialect,
    operation: "push-deliver",
    task: shortened(config.taskId),
    config: shortened(config.id),
    event,
    attempt,
    receiver: host,
    result: DELIVERY_RESULTS[result],
    reason: shortened(reason),
  };
}

/** `from` is the first event that is told again, if somebody named one. */
export function recordOfRedelivery(
  { taskId, configId, dialect, scope }: Redelivered,
  { user, machine }: Operator,
  from: number | undefined,
): AuditRecord {
  return {
    operator: user,
    address: machine,
    owner: scope.owner,
    agent: scope.agent,
    dialect,
    operation: "push-redeliver",
    task: shortened(taskId),
    config: shortened(configId),
    event: from,
    result: "OK",
  };
}

function shortened(text: string | undefined): string | undefined {
  return text?.slice(0, LONGEST_TEXT);
}
