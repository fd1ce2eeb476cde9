/** What came of every scenario with every pair, and how to show it. Knows neither the test runner nor any peer. */

const VERDICTS = ["works", "not in this dialect", "peer's limit", "FAILS"] as const;
export type Verdict = (typeof VERDICTS)[number];

/** A verdict, and for all but `works` the reason: `peer's limit: …`. */
export type Cell = "works" | `${Exclude<Verdict, "works">}: ${string}`;

interface Column {
  readonly name: string;
  readonly client: string;
  readonly server: string;
  readonly binding: string;
  readonly version: string;
}

interface Row {
  readonly name: string;
  readonly operation: string;
  readonly shows: string;
  /** By the name of the column. */
  readonly cells: Readonly<Record<string, Cell>>;
}

export interface Matrix {
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
}

export function verdictOf(cell: Cell): Verdict {
  return VERDICTS.find((verdict) => cell === verdict || cell.startsWith(`${verdict}: `)) ?? "FAILS";
}

function reasonOf(cell: Cell): string {
  return cell.slice(verdictOf(cell).length + 2);
}

const SIGNS = { works: "✓", "not in this dialect": "–", "peer's limit": "△", FAILS: "✗" } as const satisfies Record<
  Verdict,
  string
>;

/** One table per side: a reader who wants to call us need not read about us calling others. */
function sides(matrix: Matrix): readonly { readonly title: string; readonly columns: readonly Column[] }[] {
  const us = "dragoman";
  const tried = matrix.columns.filter(({ name }) => matrix.rows.some(({ cells }) => cells[name] !== undefined));
  return [
    { title: "Other clients, our server", columns: tried.filter(({ server }) => server === us) },
    { title: "Our client, other servers", columns: tried.filter(({ client }) => client === us) },
  ].filter(({ columns }) => columns.length > 0);
}

/** Numbers reasons in the order in which they are first met. */
class Notes {
  readonly #numbers = new Map<Cell, number>();

  mark(cell: Cell | undefined): string {
    if (cell === undefined) return "?";
    const sign = SIGNS[verdictOf(cell)];
    if (cell === "works") return sign;
    const number = this.#numbers.get(cell) ?? this.#numbers.size + 1;
    this.#numbers.set(cell, number);
    return `${sign} ${number}`;
  }

  lines(line: (number: number, cell: Cell) => string): string[] {
    return [...this.#numbers].map(([cell, number]) => line(number, cell));
  }
}

/** The matrix as a page of documentation. */
export function renderMatrix(matrix: Matrix): string {
  const lines = [
    "# Interoperability",
    "",
    "Generated from `test/interop/matrix.json`, which `npx vitest run test/interop` compares with what it observes: real clients and",
    "servers of the official SDKs against ours, each scenario over each binding. Every cell was run; where something does not work,",
    "what happens instead is tested. `test/interop-auth` shows that each side can authenticate with the other, and that wrong",
    "credentials are refused.",
    "",
    `${SIGNS.works} works · ${SIGNS["not in this dialect"]} not supported by the dialect · ${SIGNS["peer's limit"]} a limitation of the peer`,
  ];
  for (const { columns, title } of sides(matrix)) lines.push("", ...section(matrix, title, columns));
  lines.push("", "## What each row shows", "", "| row | operation | what is asserted |", "| --- | --- | --- |");
  for (const { name, operation, shows } of matrix.rows) lines.push(`| ${name} | ${operation} | ${shows} |`);
  return `${lines.join("\n")}\n`;
}

function section(matrix: Matrix, title: string, columns: readonly Column[]): string[] {
  const notes = new Notes();
  const heads = columns.map((column) => `${peerOf(column)}<br>${column.version} ${column.binding}`);
  const table = [
    ["", ...heads],
    ["---", ...columns.map(() => "---")],
    ...matrix.rows.map((row) => [row.name, ...columns.map(({ name }) => notes.mark(row.cells[name]))]),
  ];
  return [
    `## ${title}`,
    "",
    ...table.map((cells) => `| ${cells.join(" | ")} |`),
    "",
    ...notes.lines((number, cell) => `${number}. ${verdictOf(cell)}: ${reasonOf(cell)}`),
  ];
}

/** The matrix for a terminal. */
export function printMatrix(matrix: Matrix): string {
  const lines: string[] = [];
  const width = Math.max(...matrix.rows.map(({ name }) => name.length));
  for (const { columns, title } of sides(matrix)) {
    const notes = new Notes();
    lines.push("", title);
    columns.forEach((column, index) => {
      lines.push(
        `${" ".repeat(width)} ${"│    ".repeat(index)}┌ ${peerOf(column)}, ${column.version} ${column.binding}`,
      );
    });
    for (const { cells, name } of matrix.rows) {
      const marks = columns.map((column) => notes.mark(cells[column.name]).padEnd(4));
      lines.push(`${name.padEnd(width)} ${marks.join(" ")}`.trimEnd());
    }
    lines.push(...notes.lines((number, cell) => `${String(number).padStart(3)}  ${cell}`));
  }
  return `${lines.join("\n")}\n`;
}

function peerOf({ client, server }: Column): string {
  return (client === "dragoman" ? server : client).replace("@a2a-js/", "");
}
