const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/** `500ms`, `30s`, `1.5m`, `2h`, `30d`, `1h30m`; a bare number is seconds. Milliseconds, or undefined if it is none of these. */
export function parseDuration(text: string): number | undefined {
  const trimmed = text.trim();
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Math.round(Number(trimmed) * 1000);
  if (!/^(\d+(\.\d+)?(ms|[smhdw]))+$/.test(trimmed)) return undefined;
  let total = 0;
  for (const [, amount, unit] of trimmed.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdw])/g)) {
    total += Number(amount) * (UNITS[unit ?? ""] ?? 0);
  }
  return Math.round(total);
}

export function formatDuration(milliseconds: number): string {
  if (milliseconds % 60_000 === 0 && milliseconds > 0) return `${milliseconds / 60_000}m`;
  return milliseconds % 1000 === 0 ? `${milliseconds / 1000}s` : `${milliseconds}ms`;
}

/** `12s`, `3m05s`, `2h10m`, `4d3h`: the two largest units, for people. */
export function formatElapsed(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [minutes, hours, days] = [Math.floor(seconds / 60), Math.floor(seconds / 3600), Math.floor(seconds / 86_400)];
  if (days > 0) return `${days}d${hours % 24}h`;
  if (hours > 0) return `${hours}h${twoDigits(minutes % 60)}m`;
  return minutes > 0 ? `${minutes}m${twoDigits(seconds % 60)}s` : `${seconds}s`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}
