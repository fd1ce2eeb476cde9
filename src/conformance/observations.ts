import type { Exchange } from "./evidence.ts";
import { show } from "./json.ts";
import { errorInfoOf } from "./peers/error-details.ts";
import { A2A_ERRORS, codesOf, type ErrorName } from "./peers/error-table.ts";
import type { OperationName, Peer, Target, WireError, Witness } from "./peers/peer.ts";
import type { RequirementId } from "./requirements.ts";
import { ANSWER_TYPES, shapeTable } from "./shape-tables.ts";
import { problemsOf } from "./shapes.ts";

/** What was seen of a requirement in passing, while checks of other things ran. */
export interface Observation {
  seen: number;
  readonly problems: string[];
  evidence: readonly Exchange[];
}

const MOST_PROBLEMS = 5;

/**
 * Judges everything an interface ever sends: some requirements hold for every answer, so that no request is made for
 * them alone.
 */
export class Observations implements Witness {
  readonly #target: Target;
  readonly #found = new Map<RequirementId, Observation>();
  /** While something wrong is sent on purpose, its echo is no fault of the server's. */
  paused = false;
  /** Set once the peer exists: its log is the evidence. */
  peer: Peer | undefined;

  constructor(target: Target) {
    this.#target = target;
  }

  of(id: RequirementId): Observation | undefined {
    return this.#found.get(id);
  }

  /** One more look at a requirement; without a problem it was met. */
  note(id: RequirementId, problem?: string): void {
    const found = this.#found.get(id) ?? { seen: 0, problems: [], evidence: [] };
    this.#found.set(id, found);
    found.seen += 1;
    if (problem === undefined) return;
    if (found.problems.length === 0) found.evidence = this.peer?.log.exchanges.slice(-1) ?? [];
    if (found.problems.length < MOST_PROBLEMS && !found.problems.includes(problem)) found.problems.push(problem);
  }

  result(operation: OperationName, wire: unknown): void {
    const type = ANSWER_TYPES[operation];
    if (type !== undefined) this.#judge(type, wire);
  }

  frame(wire: unknown, fault?: string): void {
    this.#judge("Event", wire);
    this.note("STREAM-FRAME-001", fault);
  }

  refusal(error: WireError): void {
    const { binding } = this.#target;
    const typed = error.faults.find(({ rule }) => rule === "detail-type")?.text;
    const formed = error.faults.find(({ rule }) => rule !== "detail-type")?.text;
    if (binding === "JSONRPC") {
      this.note("JSONRPC-FMT-001", formed);
      this.note("JSONRPC-ERR-004", typed);
    } else if (binding === "HTTP+JSON") {
      this.note("HTTP_JSON-ERR-001", formed ?? typed);
    } else if (formed !== undefined) this.note("GRPC-ERR-001", formed);
  }

  envelope(fault: string | undefined): void {
    this.note("JSONRPC-FMT-001", fault);
  }

  contentType(kind: "whole" | "stream" | "error", contentType: string): void {
    if (kind === "stream") return;
    const { binding, version } = this.#target;
    const problem = (expected: string) => (contentType === expected ? undefined : `an answer is ${show(contentType)}`);
    if (binding === "JSONRPC") this.note("JSONRPC-FMT-002", problem("application/json"));
    else if (version === "1.0") this.note("HTTP_JSON-SVC-001", problem("application/a2a+json"));
  }

  /** An error that was provoked: it must be told as the table says. */
  provoked(expected: ErrorName, error: WireError): void {
    const { binding, version } = this.#target;
    const codes = codesOf(expected, binding, version);
    const where = binding === "JSONRPC" ? "code" : "status";
    const told = `${expected} has the ${where} ${error.code}, not ${codes.join(" or ")}`;
    this.note("ERR-CODE-001", codes.includes(error.code) ? undefined : told);
    if (version !== "1.0" || !A2A_ERRORS.has(expected)) return;
    const reason = errorInfoOf(error.details)?.reason;
    const problem =
      reason === expected ? undefined : `${expected} has no ErrorInfo that says so: ${show(error.details)}`;
    this.note(
      ({ JSONRPC: "JSONRPC-ERR-003", "HTTP+JSON": "HTTP_JSON-ERR-002", GRPC: "GRPC-ERR-001" } as const)[binding],
      problem,
    );
  }

  #judge(type: string, wire: unknown): void {
    if (this.paused) return;
    const { binding, version } = this.#target;
    const problems = problemsOf(shapeTable(version, binding), type, wire);
    for (const id of SHAPE_REQUIREMENTS) this.note(id);
    for (const { requirement, text } of problems) this.note(requirement, text);
  }
}

/** What every task, message and event is judged by. */
const SHAPE_REQUIREMENTS: readonly RequirementId[] = [
  "DM-TASK-001",
  "DM-MSG-001",
  "DM-ART-001",
  "DM-PART-001",
  "DM-SERIAL-001",
  "DM-SERIAL-002",
  "DM-SERIAL-003",
  "DM-SERIAL-006",
  "V03-KIND-001",
  "V03-FINAL-001",
];
