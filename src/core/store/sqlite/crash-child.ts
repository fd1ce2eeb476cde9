import { startThread } from "../../agents/threads.ts";
import { SILENT_LOG } from "../../model/ports.ts";
import { append, chunkEvent, status, statusEvent, submit, WORKING } from "../suite/fixtures.ts";
import { openSqliteStore } from "./sqlite-store.ts";

/**
 * Started by a test as a process of its own: writes until it is killed, and says what it wrote once the store has
 * acknowledged it. What is longer than the number it is given is written on a thread.
 */
const clock = { now: () => Date.now(), after: () => () => {} };
const [, , file = "", above] = process.argv;
const thread = above === undefined ? undefined : { start: startThread, above: Number(above) };
const store = await openSqliteStore(file, { mode: "serve", clock, log: SILENT_LOG, thread });
await store.heartbeat("child", 60_000);
for (let round = 0; ; round++) {
  const ids = Array.from({ length: 5 }, (_, index) => `task ${round}.${index}`);
  const begun = await store.write(ids.map((id) => submit(id, [statusEvent(id, status(WORKING))], { node: "child" })));
  const more = await store.write(ids.map((id) => append(id, 2, [chunkEvent(id, [{ text: id }])], { fence: 1 })));
  const numbers = more.map((result, index) => (result.ok && begun[index]?.ok ? result.number : 0));
  process.stdout.write(`${ids.map((id, index) => `${id}=${numbers[index]}`).join(",")}\n`);
}
