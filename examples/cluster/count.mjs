import { setTimeout as pause } from "node:timers/promises";
import { defineAgent } from "dragoman";

/** Slow enough to stop its node in the middle. What it has counted is in its memory, which every node can read. */
export default defineAgent({
  name: "Count",
  description: "Counts up to the number that it is sent, one per second.",
  version: "1.0.0",
  onCrash: "resume",
  skills: [{ id: "count", name: "Count", description: "A number in, counting out.", tags: ["example"] }],
  async *run(turn) {
    const last = Number.parseInt(turn.text, 10) || 20;
    const done = (await turn.memory.get("done")) ?? 0;
    yield turn.working(`Node ${process.env.NODE_PORT} counts from ${done + 1}.`);
    for (let number = done + 1; number <= last; number++) {
      await pause(1000, undefined, { signal: turn.signal });
      yield turn.working(`${number} (node ${process.env.NODE_PORT})`);
      await turn.memory.set("done", number);
    }
    yield turn.artifact({ name: "sum", text: `Counted to ${last}.` });
  },
});
