import { type Check, checkOver, Failed, notShown } from "./check.ts";
import type { CheckContext } from "./check-context.ts";
import type { Exchange, ExchangeLog } from "./exchange-log.ts";
import { show } from "./json.ts";
import { A2A_ERRORS, codesOf, type ErrorName, findErrorInfo } from "./peers/errors.ts";
import type { OperationName, Target, WireError } from "./peers/peer.ts";
import { BINDINGS, type Binding, type RequirementId } from "./requirements.ts";
import { RESULT_TYPES, schemaFor, validate } from "./schema.ts";

const JSON_BINDINGS: readonly Binding[] = ["JSONRPC", "HTTP+JSON"];

type PassiveRow = readonly [name: string, requirement: RequirementId, bindings?: readonly Binding[]];

/** Validated by the schema on every task, message and event of the other checks. */
const SCHEMA_ROWS: readonly PassiveRow[] = [
  ["tasks-complete", "DM-TASK-001"],
  ["messages-complete", "DM-MSG-001"],
  ["artifacts-complete", "DM-ART-001"],
  ["parts-of-one-kind", "DM-PART-001"],
  ["names-in-camel-case", "DM-SERIAL-001", JSON_BINDINGS],
  ["states-and-roles-spelled", "DM-SERIAL-002"],
  ["times-in-utc", "DM-SERIAL-003", JSON_BINDINGS],
  ["no-discriminators", "DM-SERIAL-006", JSON_BINDINGS],
  ["kinds-told", "V03-KIND-001", ["JSONRPC"]],
  ["final-told", "V03-FINAL-001", ["JSONRPC"]],
];

/** Validated on every response and event of the other checks. */
const PASSIVE_ROWS: readonly PassiveRow[] = [
  ...SCHEMA_ROWS,
  ["events-framed", "STREAM-FRAME-001"],
  ["responses-formed", "JSONRPC-FMT-001", ["JSONRPC"]],
  ["responses-are-json", "JSONRPC-FMT-002", ["JSONRPC"]],
  ["answers-are-a2a-json", "HTTP_JSON-SVC-001", ["HTTP+JSON"]],
  ["errors-have-their-code", "ERR-CODE-001"],
  ["error-data-typed", "JSONRPC-ERR-004", ["JSONRPC"]],
  ["error-data-names-reason", "JSONRPC-ERR-003", ["JSONRPC"]],
  ["error-bodies-formed", "HTTP_JSON-ERR-001", ["HTTP+JSON"]],
  ["error-bodies-name-reason", "HTTP_JSON-ERR-002", ["HTTP+JSON"]],
  ["statuses-name-reason", "GRPC-ERR-001", ["GRPC"]],
];

/** Run last, after all observations have been made. */
export const PASSIVE_CHECKS: readonly Check<CheckContext>[] = PASSIVE_ROWS.map(([name, id, bindings = BINDINGS]) =>
  checkOver(bindings, name, id, async ({ observations }) => {
    const found = observations.get(id);
    if (found === undefined) notShown("nothing of the kind was received");
    if (found.problems.length > 0) throw new Failed(found.problems.join("; "), found.evidence);
  }),
);

/** What was wrong with answers to other checks; without problems the requirement was met. */
interface Observation {
  readonly problems: string[];
  evidence: readonly Exchange[];
}

const MAX_PROBLEMS = 5;

/**
 * Validates everything an interface sends: some requirements hold for every response, so that no request is made for
 * them alone.
 */
export class Observations {
  /** The exchanges of the interface, as evidence. */
  readonly log: ExchangeLog;
  readonly #target: Target;
  readonly #found = new Map<RequirementId, Observation>();
  /** Set while invalid requests are sent on purpose: the server may echo their content. */
  paused = false;

  constructor(target: Target, log: ExchangeLog) {
    this.#target = target;
    this.log = log;
  }

  get(id: RequirementId): Observation | undefined {
    return this.#found.get(id);
  }

  /** Counts one observation; without a problem the requirement was met. */
  record(id: RequirementId, problem?: string): void {
    const found = this.#found.get(id) ?? { problems: [], evidence: [] };
    this.#found.set(id, found);
    if (problem === undefined) return;
    if (found.problems.length === 0) found.evidence = this.log.exchanges.slice(-1);
    if (found.problems.length < MAX_PROBLEMS && !found.problems.includes(problem)) found.problems.push(problem);
  }

  recordResult(operation: OperationName, wire: unknown): void {
    const type = RESULT_TYPES[operation];
    if (type !== undefined) this.#validate(type, wire);
  }

  /** `fault` is what is wrong with the frame around the event. */
  recordEvent(wire: unknown, fault?: string): void {
    this.#validate("Event", wire);
    this.record("STREAM-FRAME-001", fault);
  }

  recordRefusal({ detailFault, fault }: WireError): void {
    const { binding } = this.#target;
    if (binding === "JSONRPC") {
      this.record("JSONRPC-FMT-001", fault);
      this.record("JSONRPC-ERR-004", detailFault);
    } else if (binding === "HTTP+JSON") {
      this.record("HTTP_JSON-ERR-001", fault ?? detailFault);
    } else if (fault !== undefined) this.record("GRPC-ERR-001", fault);
  }

  /** Of a full answer; streams have a type of their own. */
  recordContentType(contentType: string): void {
    const { binding, version } = this.#target;
    const problem = (expected: string) => (contentType === expected ? undefined : `an answer is ${show(contentType)}`);
    if (binding === "JSONRPC") this.record("JSONRPC-FMT-002", problem("application/json"));
    else if (version === "1.0") this.record("HTTP_JSON-SVC-001", problem("application/a2a+json"));
  }

  /** Checks that an expected error is encoded as the table of errors specifies. */
  recordError(expected: ErrorName, error: WireError): void {
    const { binding, version } = this.#target;
    const codes = codesOf(expected, binding, version);
    const where = binding === "JSONRPC" ? "code" : "status";
    const mismatch = `${expected} has the ${where} ${error.code}, not ${codes.join(" or ")}`;
    this.record("ERR-CODE-001", codes.includes(error.code) ? undefined : mismatch);
    if (version !== "1.0" || !A2A_ERRORS.has(expected)) return;
    const reason = findErrorInfo(error.details)?.reason;
    const problem =
      reason === expected ? undefined : `${expected} has no ErrorInfo with that reason: ${show(error.details)}`;
    this.record(
      ({ JSONRPC: "JSONRPC-ERR-003", "HTTP+JSON": "HTTP_JSON-ERR-002", GRPC: "GRPC-ERR-001" } as const)[binding],
      problem,
    );
  }

  #validate(type: string, wire: unknown): void {
    if (this.paused) return;
    const { binding, version } = this.#target;
    const problems = validate(schemaFor(version, binding), type, wire);
    for (const [, id] of SCHEMA_ROWS) this.record(id);
    for (const { requirement, text } of problems) this.record(requirement, text);
  }
}
