/** What a server says about itself at `/metrics`. */
import { setTimeout as after } from "node:timers/promises";
import { sendRaw } from "./raw-http.ts";

export async function readMetric(url: string, name: string): Promise<number> {
  const { body } = await sendRaw(url, { path: "/metrics" });
  const match = new RegExp(`^${name} (\\S+)$`, "m").exec(body.toString("utf8"));
  if (match === null) throw new Error(`There is no metric ${name}.`);
  return Number(match[1]);
}

/** Waits until the metric is as expected. A server notices some things, such as a reader that left, only in time. */
export async function untilMetric(url: string, name: string, expected: number | ((value: number) => boolean)) {
  const fits = typeof expected === "number" ? (value: number) => value === expected : expected;
  let value = await readMetric(url, name);
  for (let attempt = 0; attempt < 250 && !fits(value); attempt++) {
    await after(20);
    value = await readMetric(url, name);
  }
  if (!fits(value)) throw new Error(`${name} is ${value} and stays so.`);
}
