/** Gauges of what all workers share, which must not be added up. */
const SHARED = /^dragoman_(registry_agents|upstream_up)\b/;

/** Joins what several processes report in the Prometheus text format: the same series are added up. */
export function mergeMetrics(texts: readonly string[]): string {
  const comments = new Map<string, string[]>();
  const series = new Map<string, Map<string, number>>();
  for (const text of texts) {
    for (const line of text.split("\n")) {
      const comment = /^# (?:HELP|TYPE) (\S+) /.exec(line);
      if (comment?.[1] !== undefined) {
        const known = comments.get(comment[1]) ?? [];
        if (!known.includes(line)) comments.set(comment[1], [...known, line]);
        continue;
      }
      const end = line.lastIndexOf(" ");
      if (end === -1) continue;
      const name = line.slice(0, end);
      const value = Number(line.slice(end + 1));
      const written = /^[^{\s]+/.exec(name)?.[0] ?? name;
      const summarized = written.replace(/_(?:sum|count)$/, "");
      const metric = comments.has(summarized) ? summarized : written;
      const values = series.get(metric) ?? new Map<string, number>();
      const before = values.get(name) ?? 0;
      values.set(name, SHARED.test(name) ? Math.max(before, value) : before + value);
      series.set(metric, values);
    }
  }
  let merged = "";
  for (const [metric, lines] of comments) {
    merged += `${lines.join("\n")}\n`;
    for (const [name, value] of series.get(metric) ?? []) merged += `${name} ${value}\n`;
  }
  return merged;
}
