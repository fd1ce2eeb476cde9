/** What was seen, for people. */
export interface Seen {
  readonly binding: string;
  readonly operation: string;
  readonly answers: Readonly<Record<string, string>>;
}

export const COLUMNS = ["none", "wrong", "expired", "other", "right"] as const;

export function renderTable(seen: readonly Seen[]): string {
  const head = `| dialect and binding | operation | no credentials | wrong | expired | other owner | right |\n|${"---|".repeat(7)}`;
  const rows = seen.map(({ binding, operation, answers }) => {
    return `| ${[binding, operation, ...COLUMNS.map((column) => answers[column] ?? "")].join(" | ")} |`;
  });
  return `\n${[head, ...rows].join("\n")}\n`;
}
