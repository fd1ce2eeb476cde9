import { appendFile } from "node:fs/promises";
import type { PushAttempt } from "../../engine/deliveries/push-sender.ts";
import type { Caller } from "../../model/caller.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { Clock, Log, Meter } from "../../model/ports.ts";
import type { Redelivered } from "../../store/contract.ts";

/** One line of the audit log, without its time. Undefined members are omitted. */
type AuditRecord = Readonly<Record<string, string | number | boolean | undefined>>;

export interface AuditedCall {
  /** Absent for a caller that was not authenticated. */
  readonly caller?: Caller;
  readonly address?: string | undefined;
  /** Absent if the request was not read that far. */
  readonly agent?: string | undefined;
  readonly dialect: string;
  readonly operation: string;
  readonly task?: string | undefined;
  /** Id of the push config that the operation is about. */
  readonly config?: string | undefined;
  /** `OK` or the code of the error. */
  readonly result: string;
  /** In milliseconds. */
  readonly duration?: number;
}

/** The user of a command that runs beside the server. */
export interface Operator {
  readonly user: string;
  readonly machine: string;
}

/** Maximum length of an id chosen by a caller. */
const MAX_TEXT_LENGTH = 256;

const DELIVERY_RESULTS = {
  delivered: "OK",
  failed: "FAILED",
  "given-up": "GIVEN_UP",
} as const satisfies Record<PushAttempt["result"], string>;

/** Who did what to which task, from where, and with what result. Contains neither contents nor secrets. */
export function toCallRecord(call: AuditedCall): AuditRecord {
  const { caller, address, agent, dialect, operation, task, config, result, duration } = call;
  return {
    owner: caller?.owner,
    authenticated: caller?.authenticated ?? false,
    address: caller?.address ?? address,
    agent,
    dialect,
    operation,
    task: truncate(task),
    config: truncate(config),
    result,
    ms: duration,
  };
}

/** What the server did for the owner of a push config. Of the address only the host: owners may keep secrets in the rest. */
export function toDeliveryRecord({ delivery, scope, lane, event, attempt, result, reason }: PushAttempt): AuditRecord {
  return {
    owner: scope.owner,
    agent: scope.agent,
    dialect: delivery.dialect,
    operation: "push-deliver",
    task: truncate(delivery.taskId),
    config: truncate(delivery.id),
    event,
    attempt,
    receiver: lane,
    result: DELIVERY_RESULTS[result],
    reason: truncate(reason),
  };
}

/** `from` is the first event that is sent again, if the operator named one. */
export function toRedeliveryRecord(
  { taskId, deliveryId, dialect, scope }: Redelivered,
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
    task: truncate(taskId),
    config: truncate(deliveryId),
    event: from,
    result: "OK",
  };
}

function truncate(text: string | undefined): string | undefined {
  return text?.slice(0, MAX_TEXT_LENGTH);
}

export interface AuditOptions {
  /** Records are appended to it as JSON lines. It may be moved away at any time: the next write creates it again. */
  readonly file: string;
  /** Refuse requests while the file cannot be written. Otherwise failures are logged and counted. */
  readonly required?: boolean;
}

interface AuditPorts {
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  /** Appends to a file; injected so that tests can simulate a failing disk. */
  readonly append?: (file: string, text: string) => Promise<void>;
}

/** Lines are batched for this long. */
const BATCH_MS = 100;
const RETRY_MS = 1_000;
/** Maximum number of buffered characters: a failing disk must not exhaust the memory of the process. */
const MAX_WAITING = 8 * 1024 * 1024;

/** The append-only log of what callers did, and of what was done for them. */
export class AuditLog {
  readonly #options: AuditOptions;
  readonly #ports: AuditPorts;
  #waiting: string[] = [];
  #waitingLength = 0;
  #writing: Promise<void> | undefined;
  #stopTimer: (() => void) | undefined;
  #failing = false;
  #dropped = 0;

  constructor(options: AuditOptions, ports: AuditPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  /** Checks whether the file can be written before the first record. Rejects if `required` and it cannot. */
  async open(): Promise<void> {
    await this.#write("");
    if (this.#failing && this.#options.required === true) {
      throw new Error(`The audit log ${this.#options.file} cannot be written, and audit.required is set.`);
    }
  }

  /** Throws UNAVAILABLE if records are required and cannot be written. */
  assertWritable(): void {
    if (!this.#failing || this.#options.required !== true) return;
    throw new ProtocolError("UNAVAILABLE", "The server cannot record what it does.", { retryAfter: RETRY_MS / 1_000 });
  }

  now(): number {
    return this.#ports.clock.now();
  }

  record(record: AuditRecord): void {
    if (this.#waitingLength >= MAX_WAITING) {
      this.#dropped++;
      this.#ports.meter.count("audit_dropped");
      return;
    }
    const line = `${JSON.stringify({ time: new Date(this.now()).toISOString(), ...record })}\n`;
    this.#waiting.push(line);
    this.#waitingLength += line.length;
    this.#schedule(BATCH_MS);
  }

  /** Writes buffered lines. */
  async close(): Promise<void> {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    await this.#writing;
    if (this.#waiting.length > 0) await this.#flush();
  }

  #schedule(milliseconds: number): void {
    if (this.#stopTimer !== undefined || this.#writing !== undefined) return;
    this.#stopTimer = this.#ports.clock.after(milliseconds, () => {
      this.#stopTimer = undefined;
      this.#writing = this.#flush().then(() => {
        this.#writing = undefined;
        if (this.#waiting.length > 0) this.#schedule(this.#failing ? RETRY_MS : BATCH_MS);
      });
    });
  }

  async #flush(): Promise<void> {
    const lines = this.#waiting;
    this.#waiting = [];
    if (!(await this.#write(lines.join("")))) {
      // Before newer lines: the order is part of the record.
      this.#waiting = [...lines, ...this.#waiting];
      return;
    }
    this.#waitingLength -= lines.reduce((length, line) => length + line.length, 0);
  }

  async #write(text: string): Promise<boolean> {
    const { log, meter, append = appendPrivateFile } = this.#ports;
    const { file } = this.#options;
    try {
      await append(file, text);
      if (this.#failing) log.warn({ file, dropped: this.#dropped }, "The audit log can be written again.");
      this.#failing = false;
      this.#dropped = 0;
      return true;
    } catch (error) {
      meter.count("audit_failures");
      if (!this.#failing) log.error({ err: error, file }, "The audit log cannot be written.");
      this.#failing = true;
      return false;
    }
  }
}

/** Opens the file for every batch, so that it can be rotated at any time. */
function appendPrivateFile(file: string, text: string): Promise<void> {
  return appendFile(file, text, { mode: 0o600 });
}
