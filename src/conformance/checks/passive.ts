import type { InterfaceCheck } from "../check.ts";
import { Failed, notShown } from "../outcome.ts";
import type { Binding } from "../requirement.ts";
import type { RequirementId } from "../requirements.ts";

const JSON_BINDINGS: readonly Binding[] = ["JSONRPC", "HTTP+JSON"];

type PassiveRow = readonly [name: string, requirement: RequirementId, bindings?: readonly Binding[]];

/** What is judged by every answer and event of the checks before. */
const PASSIVE: readonly PassiveRow[] = [
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

/** They come last, when there is something to judge. */
export const PASSIVE_CHECKS: readonly InterfaceCheck[] = PASSIVE.map(([name, id, bindings]) => ({
  name,
  shows: [id],
  ...(bindings === undefined ? {} : { bindings }),
  async run({ seen }) {
    const found = seen.of(id);
    if (found === undefined) notShown("nothing of the kind was received");
    if (found.problems.length > 0) throw new Failed(found.problems.join("; "), found.evidence);
  },
}));
