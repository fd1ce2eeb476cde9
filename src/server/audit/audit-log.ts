import { appendFile } from "node:fs/promises";
import type { PushAttempt } from "../../engine/deliveries/webhook-route.ts";
import type { Caller } from "../../model/caller.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { Clock, Log, Meter } from "../../model/ports.ts";
import type { Redelivered } from "../../store/contract.ts";

/** One line of the audit log, without its time. What is undefined is left out. */
type AuditRecord = Readonly<Record<string, string | number | boolean | undefined>>;

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
const MAX_TEXT_LENGTH = 256;

const DELIVERY_RESULTS = {
  delivered: "OK",
  failed: "FAILED",
  "given-up": "GIVEN_UP",
} as const satisfies Record<PushAttempt["result"], string>;

/** Who did what to which task, from where, and how it ended. Neither contents nor anything secret. */
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

/** `from` is the first event that is told again, if somebody named one. */
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
  /** Records are appended to it, one line of JSON each. It may be moved away at any time: the next line makes it anew. */
  readonly file: string;
  /** Refuse to work while nothing can be written. Otherwise that is logged and counted. */
  readonly required?: boolean;
}

interface AuditPorts {
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  /** Adds to the end of a file; injected so that a failing disk can be had. */
  readonly append?: (file: string, text: string) => Promise<void>;
}

/** Lines are collected for this long and written together. */
const BATCH_MS = 100;
const RETRY_MS = 1_000;
/** Characters that wait at most; a disk that takes nothing must not cost the process its memory. */
const MAX_WAITING = 8 * 1024 * 1024;

/** The append-only record of what callers did, and of what was done for them. */
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

  /** Finds out whether the file can be written, before there is anything to write. Rejects where that is required. */
  async open(): Promise<void> {
    await this.#write("");
    if (this.#failing && this.#options.required === true) {
      throw new Error(`The audit log ${this.#options.file} cannot be written, and audit.required is set.`);
    }
  }

  /** Throws UNAVAILABLE if nothing may be done that cannot be recorded. */
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

  /** Writes what waits. */
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
      // Before what came meanwhile: the order is part of the record.
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

/** Opened for every batch, so that whoever rotates the file need not tell us. */
function appendPrivateFile(file: string, text: string): Promise<void> {
  return appendFile(file, text, { mode: 0o600 });
}
