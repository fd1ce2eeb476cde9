/** Agents that call themselves through this server, from where a call of the first of them has to count, too. */
import { beforeAll, expect, test } from "vitest";
import { CLI } from "../built/cli.ts";
import { ServedFolder } from "./served-folder.ts";

/** Calls whatever address it is sent, with that address as the message. */
const CALLER = `import { defineAgent } from "dragoman";
import { connect, textOf } from "dragoman/client";
export default defineAgent({
  name: "Ring",
  description: "Calls itself.",
  concurrency: 20,
  run: async (turn) => {
    try {
      return "+" + textOf(await (await connect(turn.text)).send(turn.text));
    } catch (error) {
      return error.message;
    }
  },
});`;

const served = new ServedFolder({
  "dragoman.yaml": `
server: { port: 0 }
store: "memory:"
agents:
  module: { module: ./caller.ts }
  isolated: { module: ./caller.ts, isolate: true }
  program: { exec: [sh, caller.sh], concurrency: 20 }
`,
  "caller.ts": CALLER,
  "caller.sh": `read url
printf "+"
"${process.execPath}" "${CLI}" send -a "$url" --text "$url" 2>&1
`,
});
beforeAll(() => served.start());

test.each(["module", "isolated", "program"])(
  "a ring of one (%s) ends at the limit, the first time it is called",
  async (name) => {
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: `${served.url}/agents/${name}` }] };
    const answer = JSON.stringify(await served.post(name, "SendMessage", { message }));
    expect(answer).toContain("The request came through 9 agents, more than the 8 allowed.");
    expect(answer.match(/\+/g)?.length).toBeLessThanOrEqual(9);
  },
);
