import { appendFile } from "node:fs/promises";
import { ProtocolError } from "../model/errors.ts";
import type { Clock, Log, Meter } from "../model/ports.ts";
import type { AuditRecord } from "./audit-records.ts";

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
const GATHER_MS = 100;
const RETRY_MS = 1_000;
/** Characters that wait at most; a disk that takes nothing must not cost the process its memory. */
const MOST_WAITING = 8 * 1024 * 1024;

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
  check(): void {
    if (!this.#failing || this.#options.required !== true) return;
    throw new ProtocolError("UNAVAILABLE", "The server cannot record what it does.", { retryAfter: RETRY_MS / 1_000 });
  }

  now(): number {
    return this.#ports.clock.now();
  }

  record(record: AuditRecord): void {
    if (this.#waitingLength >= MOST_WAITING) {
      this.#dropped++;
      this.#ports.meter.count("audit_dropped");
      return;
    }
    const line = `${JSON.stringify({ time: new Date(this.now()).toISOString(), ...record })}\n`;
    this.#waiting.push(line);
    this.#waitingLength += line.length;
    this.#schedule(GATHER_MS);
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
        if (this.#waiting.length > 0) this.#schedule(this.#failing ? RETRY_MS : GATHER_MS);
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
    const { log, meter, append = appendPrivately } = this.#ports;
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
function appendPrivately(file: string, text: string): Promise<void> {
  return appendFile(file, text, { mode: 0o600 });
}
