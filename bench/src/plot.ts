import type { ScenarioReport } from "./report.ts";

/** What is plotted: the first contestant of each scenario is the baseline of its bars. */
const groups = {
  send: "Blocking send, per request",
  stream: "Stream of 200 chunks at once, per stream",
  "paced-stream": "Stream with a chunk every 20 ms, per chunk",
  "grpc-send": "Blocking send over gRPC, per call",
  "grpc-stream": "Stream of 200 chunks over gRPC, per stream",
} satisfies Record<string, string>;

const colours = { bare: "#9aa3ad", dragoman: "#2f6fdb", "a2a-js": "#d98032" } satisfies Record<string, string>;

const width = 820;
const left = 150;
const right = 130;
const barHeight = 14;
const rowHeight = 19;
const groupGap = 34;
const top = 62;

interface Bar {
  label: string;
  micros: number;
  times: number;
}

/** Whether everything that is plotted was run: a part of it must not replace the whole. */
export function isPlottable(reports: readonly Pick<ScenarioReport, "name">[]): boolean {
  return Object.keys(groups).every((name) => reports.some((report) => report.name === name));
}

/**
 * An SVG with the CPU of every contestant as a multiple of the baseline's. The scale is logarithmic: on a linear one
 * all bars but the longest would look the same.
 */
export function plot(reports: readonly Pick<ScenarioReport, "name" | "medians">[], source: string): string {
  const plotted = Object.entries(groups).flatMap(([name, title]) => {
    const report = reports.find((one) => one.name === name);
    return report === undefined ? [] : [{ title, bars: barsOf(report) }];
  });
  const longest = Math.max(10, ...plotted.flatMap(({ bars }) => bars.map(({ times }) => times)));
  const scale = (times: number) => (Math.log10(Math.max(times, 1)) / Math.log10(longest)) * (width - left - right);
  const parts: string[] = [];
  let y = top;
  for (const { title, bars } of plotted) {
    parts.push(`<text class="title" x="12" y="${y}">${escapeXml(title)}</text>`);
    y += 10;
    for (const bar of bars) {
      parts.push(...drawBar(bar, y, scale));
      y += rowHeight;
    }
    y += groupGap - 10;
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y - 12}" width="${width}" role="img">`,
    "<title>CPU of the server process, as a multiple of the baseline</title>",
    `<style>text{font:12px system-ui,sans-serif;fill:#24292f}.head,.title{font-weight:600}.head{font-size:15px}.note{fill:#57606a}</style>`,
    `<rect width="100%" height="100%" rx="6" fill="#fff"/>`,
    `<text class="head" x="12" y="24">CPU of the server process as a multiple of bare node:http or grpc-js (less is better)</text>`,
    `<text class="note" x="12" y="41">logarithmic scale · medians of one run · npm run bench, ${escapeXml(source)}</text>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

function barsOf({ medians }: Pick<ScenarioReport, "medians">): Bar[] {
  const measured = Object.entries(medians).flatMap(([label, { cpuMicros }]) =>
    cpuMicros === undefined ? [] : [{ label, micros: cpuMicros }],
  );
  const baseline = measured[0]?.micros ?? 1;
  return measured.map((bar) => ({ ...bar, times: bar.micros / baseline }));
}

function drawBar({ label, micros, times }: Bar, y: number, scale: (times: number) => number): string[] {
  const colour = Object.entries(colours).find(([prefix]) => label.startsWith(prefix))?.[1] ?? "#57606a";
  // The baseline would have no length.
  const length = Math.max(2, scale(times)).toFixed(1);
  const cost = micros >= 1_000 ? `${(micros / 1_000).toPrecision(3)} ms` : `${micros.toPrecision(3)} µs`;
  const textY = y + barHeight - 3;
  return [
    `<text x="${left - 8}" y="${textY}" text-anchor="end">${escapeXml(label)}</text>`,
    `<rect x="${left}" y="${y}" width="${length}" height="${barHeight}" rx="2" fill="${colour}"/>`,
    `<text x="${left + Number(length) + 6}" y="${textY}">${times.toPrecision(times < 10 ? 2 : 3)} × · ${cost}</text>`,
  ];
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
