import { createDeferred } from "../../src/core/wire/link.ts";
import { defineAgent } from "../../src/index.ts";

export const REPORT = "Grüße, 世界";

/** Asks for the language, then completes with a file; `Wait` works until it is cancelled. */
export const translator = defineAgent({
  name: "Translator",
  description: "Translates reports.",
  skills: [{ id: "translate", name: "Translate", description: "Translates a report.", tags: [] }],
  async *run(turn) {
    yield turn.working("Reading, 50%");
    if (turn.text === "Wait") {
      const { promise, resolve } = createDeferred();
      turn.signal.addEventListener("abort", resolve, { once: true });
      await promise;
      return;
    }
    if (turn.history.length === 0) {
      yield turn.inputRequired("Into which language?");
      return;
    }
    const raw = Buffer.from(REPORT).toString("base64");
    yield turn.artifact({
      name: "report",
      parts: [{ text: `In ${turn.text}:` }, { raw, filename: "report.txt", mediaType: "text/plain" }],
    });
  },
});
