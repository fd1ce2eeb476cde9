/** What came of every scenario with every pair of dialects, and how to show it. Knows neither test runner nor dialects. */

export interface Bridges {
  readonly callers: readonly string[];
  readonly callees: readonly string[];
  readonly scenarios: readonly { readonly name: string; readonly shows: string }[];
  /** By caller, callee and scenario; a scenario that is not listed is seen as in a direct call. */
  readonly losses: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>>;
}

/** The rows of the table, and what its numbers mean. */
function layOut({ callees, callers, losses, scenarios }: Bridges) {
  const notes: string[] = [];
  const numberOf = (note: string) => {
    if (!notes.includes(note)) notes.push(note);
    return notes.indexOf(note) + 1;
  };
  const cellOf = (caller: string, callee: string) => {
    const lost = losses[caller]?.[callee] ?? {};
    const listed = scenarios.filter(({ name }) => lost[name] !== undefined);
    const numbers = listed.map(({ name }) => numberOf(`${name}: ${lost[name]}`));
    return numbers.length === 0 ? "✓" : `△ ${numbers.join(" ")}`;
  };
  const rows = callers.map((caller) => [caller, ...callees.map((callee) => cellOf(caller, callee))]);
  return { rows, notes };
}

/** A section of a page of documentation. */
export function renderBridges(bridges: Bridges): string {
  const { notes, rows } = layOut(bridges);
  const table = [["caller", ...bridges.callees], ["---", ...bridges.callees.map(() => "---")], ...rows];
  return [
    "",
    "## Our bridges",
    "",
    "Generated from `test/bridge/bridges.json`, which `npx vitest run test/bridge` compares with what it observes: an agent that is called in",
    "the dialect of the row through a server that calls it in the dialect of the column ([gateway.md](gateway.md)), in each of these scenarios:",
    "",
    ...bridges.scenarios.map(({ name, shows }) => `- ${name}: ${shows}`),
    "",
    "✓ the caller sees the same in all of them as if it called the agent directly · △ the same but for these losses, which the",
    "callee's dialect declares ([dialects.md](dialects.md)); whatever else differs fails the test. As caller, `xiaoyi-link`",
    "is a phone that reaches the server over the link; as callee, an agent that dialled in. Of a file, phones show the name.",
    "",
    ...table.map((cells) => `| ${cells.join(" | ")} |`),
    "",
    ...notes.map((note, at) => `${at + 1}. ${note}`),
    "",
  ].join("\n");
}

/** The table for a terminal. */
export function printBridges(bridges: Bridges): string {
  const { notes, rows } = layOut(bridges);
  const cells = [["caller \\ callee", ...bridges.callees], ...rows];
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const lines = cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return `${["", ...lines, ...notes.map((note, at) => `${String(at + 1).padStart(3)}  ${note}`)].join("\n")}\n`;
}
