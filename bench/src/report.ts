import { type Measure, measures, type Sample, type Samples, series } from "./measures.ts";
import { median } from "./statistics.ts";
import type { Verdict } from "./verdict.ts";

export interface ScenarioReport {
  name: string;
  title: string;
  setup: string;
  /** Measures that are printed as a table each, of labels `row → column`. */
  grid?: readonly Measure[];
  /** Medians over the rounds, by contestant. */
  medians: Record<string, Sample>;
  failures: Record<string, string>;
  verdicts: Verdict[];
}

const order = Object.keys(measures) as Measure[];

export function mediansOf(samples: Samples): Record<string, Sample> {
  const result: Record<string, Sample> = {};
  for (const label of samples.keys()) {
    const sample: Sample = {};
    for (const measure of order) {
      const values = series(samples, label, measure);
      if (values.length > 0) sample[measure] = median(values);
    }
    result[label] = sample;
  }
  return result;
}

export function printReport(report: ScenarioReport): string {
  const { grid, medians } = report;
  const tables = grid?.flatMap((measure) => gridTable(medians, measure)) ?? table(medians);
  const lines = ["", `${report.title}  [${report.name}]`, ...tables];
  for (const [label, reason] of Object.entries(report.failures)) lines.push(`  ! ${label}: ${reason}`);
  for (const verdict of report.verdicts) lines.push(`  ${printVerdict(verdict)}`);
  return lines.join("\n");
}

export function printVerdict({ text, value, met }: Verdict): string {
  const measured = value === undefined ? "not measured" : value.toFixed(value >= 100 ? 0 : 2);
  return `${met ? "✓" : "✗"} ${text}: ${measured}`;
}

function table(medians: Record<string, Sample>): string[] {
  const rows = Object.entries(medians);
  if (rows.length === 0) return [];
  const used = order.filter((measure) => rows.some(([, sample]) => sample[measure] !== undefined));
  const cells = rows.map(([label, sample]) => [label, ...used.map((measure) => cell(sample, measure))]);
  return align([["", ...used.map((measure): string => measures[measure].title)], ...cells]);
}

function gridTable(medians: Record<string, Sample>, measure: Measure): string[] {
  const labels = Object.keys(medians).map((label) => label.split(" → "));
  const rows = [...new Set(labels.map(([row]) => row!))];
  const columns = [...new Set(labels.map(([, column]) => column!))];
  const cells = rows.map((row) => [
    row,
    ...columns.map((column) => cell(medians[`${row} → ${column}`] ?? {}, measure)),
  ]);
  return align([[`${measures[measure].title}, from → to`, ...columns], ...cells]);
}

function align(all: readonly (readonly string[])[]): string[] {
  const widths = all[0]!.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
  return all.map((row) => {
    const [label, ...values] = row.map((text, column) =>
      column === 0 ? text.padEnd(widths[0]!) : text.padStart(widths[column]!),
    );
    return `  ${[label, ...values].join("  ")}`;
  });
}

function cell(sample: Sample, measure: Measure): string {
  const value = sample[measure];
  if (value === undefined) return "–";
  const { digits } = measures[measure];
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
