let lastMilliseconds = Number.NaN;
let lastText = "";

/** ISO 8601 in UTC. Events of one millisecond share one string: formatting is dearer than the event. */
export function timestampOf(milliseconds: number): string {
  if (milliseconds !== lastMilliseconds) {
    lastMilliseconds = milliseconds;
    lastText = new Date(milliseconds).toISOString();
  }
  return lastText;
}
