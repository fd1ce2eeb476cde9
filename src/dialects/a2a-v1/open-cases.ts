import { isRecord } from "../shared/proto-json-reading.ts";

/**
 * Some servers publish security schemes as their generated code holds them in memory: `{ scheme: { $case, value } }`,
 * where the JSON of A2A has the member that `$case` names. Read as what it means.
 */
export function withOpenCases(card: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return isRecord(card.securitySchemes) ? { ...card, securitySchemes: opened(card.securitySchemes) } : card;
}

function opened(value: unknown): unknown {
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) =>
      isRecord(member) && typeof member.$case === "string"
        ? [member.$case, opened(member.value)]
        : [name, opened(member)],
    ),
  );
}
