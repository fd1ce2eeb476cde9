import { fork } from "node:child_process";
import { expect, it } from "vitest";
import { complaintOf, nextReply } from "./launch.ts";

it("tells whoever waits for a reply that the process has ended", async () => {
  const script = `data:text/javascript,${encodeURIComponent('throw new TypeError("no port")')}`;
  const child = fork("unused", { execArgv: ["--import", script], stdio: ["ignore", "ignore", "pipe", "ipc"] });
  await expect(nextReply(child, "cpu", complaintOf(child))).rejects.toThrow(/ended with 1/);
});
