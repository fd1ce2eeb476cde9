/** The process that is killed when it has an answer for a phone, before it has told it. */

import { existsSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { defineAgent, type ServeOptions, serve } from "dragoman";
import { GO, XIAOYI } from "./xiaoyi-files.ts";

const [file = ""] = process.argv.slice(2);
const xiaoyi = JSON.parse(readFileSync(file + XIAOYI, "utf8")) as ServeOptions["xiaoyi"] & object;

/** Answers, or asks, when it is let. */
const patient = defineAgent({
  name: "Patient",
  description: "Waits before it answers.",
  async *run(turn) {
    yield turn.working();
    while (!existsSync(file + GO)) await pause(5);
    if (turn.text === "ask") yield turn.inputRequired("Which one?");
    else yield turn.artifact({ name: "answer", text: `About ${turn.text}` });
  },
});

const server = await serve({ agents: { patient }, store: `sqlite:${file}`, port: 0, grpcPort: false, xiaoyi });
process.send?.({ url: server.url });
process.on("disconnect", () => process.exit(1));
