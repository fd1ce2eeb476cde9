/** What a server says about itself at `/metrics`. */
import { setTimeout as after } from "node:timers/promises";
import { sendRaw } from "./raw-http.ts";

export async function readMetric(url: string, name: string): Promise<number> {
  const { body } = await sendRaw(url, { path: "/metrics" });
  const match = new RegExp(`^${name} (\\S+)$`, "m").exec(body.toString("utf8"));
  if (match === null) throw new Error(`There is no metric ${name}.`);
  return Number(match[1]);
}

/** Waits until the metric has the value. A server notices some things, such as a reader that left, only in time. */
export async function untilMetric(url: string, name: string, value: number): Promise<void> {
  for (let attempt = 0; attempt < 250; attempt++) {
    if ((await readMetric(url, name)) === value) return;
    await after(20);
  }
  throw new Error(`${name} did not become ${value}; it is ${await readMetric(url, name)}.`);
}
