/** What the author of an agent sees of its mistakes when the server is part of a program: stderr, without any options. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runProgram } from "../built/cli.ts";
import { createProject, type Project } from "../built/project.ts";

let project: Project;
beforeAll(() => {
  project = createProject();
});
afterAll(() => project?.remove());

const PROGRAM = `
import { defineAgent, serve } from "dragoman";
import { connect, textOf } from "dragoman/client";

const about = { name: "A", description: "An agent." };
const agents = {
  broken: defineAgent({
    ...about,
    async *run(turn) {
      yield turn.working("Trying");
      throw new Error("no such \\u001b[2Jthing, token=abcdefgh12345678");
    },
  }),
  forgetful: defineAgent({
    ...about,
    async *run(turn) {
      turn.artifact({ name: "a", text: "lost" });
      yield { ...turn.artifact({ name: "b", text: "kept" }), lastChunk: true };
      yield* turn.stream("c", ["x"]);
      turn.stream("d", ["x"]);
      if (turn.text === "unsure") yield turn.working();
    },
  }),
  silent: defineAgent({ ...about, run: (turn) => void turn.reply("lost") }),
  text: defineAgent({ ...about, run: async function* () { yield "a text" as never; } }),
  stream: defineAgent({ ...about, run: async function* (turn) { yield turn.stream("a", ["b"]) as never; } }),
  answer: defineAgent({ ...about, run: async function* () { return "a text" as never; } }),
};
const options = process.argv[2] === "silent" ? { log: false as const } : {};
const server = await serve({ agents, port: 0, ...options });
for (const name of ["broken", "forgetful", "forgetful", "silent"]) {
  const agent = await connect(server.url + "/agents/" + name);
  console.log(name, JSON.stringify(textOf(await agent.send("hi"))));
}
for (const name of ["text", "stream", "answer"]) await (await connect(server.url + "/agents/" + name)).send("hi");
await server.close();
`;

async function run(...args: string[]) {
  const file = project.write("program.ts", PROGRAM.trimStart());
  const program = ["--import", import.meta.resolve("tsx"), file, ...args];
  return { file, ...(await runProgram(process.execPath, program, { folder: project.folder })) };
}

const ANSWERS = (failure: string) => [`broken ${JSON.stringify(failure)}`, ...FORGOTTEN].join("\n").concat("\n");
const FORGOTTEN = [`forgetful ${JSON.stringify("kept\n\nx")}`, `forgetful ${JSON.stringify("kept\n\nx")}`, 'silent ""'];

describe("an agent's mistakes", () => {
  it("are on stderr, each once, with the agent and the place in its code; callers are told where to look", async () => {
    const { code, file, stderr, stdout } = await run();
    expect(stdout).toBe(ANSWERS("The agent failed while it worked on this message; the server's log says why."));
    expect(code).toBe(0);
    const lines = stderr.trimEnd().split("\n");
    const headings = lines.filter((line) => line.startsWith("dragoman: ")).map((line) => line.replace(/ task=\S+/, ""));
    const place = (at: string) => `${file}:${at}`;
    expect(headings).toEqual([
      "dragoman: error: The agent threw. agent=broken",
      `dragoman: warning: turn.artifact(…) at ${place("16:12")} has no effect, because its result was not yielded: write "yield turn.artifact(…)". agent=forgetful`,
      `dragoman: warning: turn.stream(…) at ${place("19:12")} has no effect, because its result was not yielded: write "yield* turn.stream(…)". agent=forgetful`,
      `dragoman: warning: turn.reply(…) at ${place("23:60")} has no effect, because its result was not yielded: write "return turn.reply(…)". agent=silent`,
      ...["text", "stream", "answer"].map((agent) => `dragoman: error: The agent threw. agent=${agent}`),
    ]);
    expect(lines.filter((line) => line.startsWith("TypeError: "))).toEqual([
      'TypeError: The agent yielded text that is not an event: write "yield turn.artifact({ name, text })".',
      'TypeError: The agent yielded a stream instead of its events: write "yield* turn.stream(…)".',
      'TypeError: The agent returned something that is not a message: write "return turn.reply(…)".',
    ]);
    expect(stderr).toContain("Error: no such \\x1b[2Jthing, token=[redacted]");
    expect(stderr.match(/no such/g)).toHaveLength(1);
    expect(stderr).toContain(place("10"));
  });

  it("are not mentioned with log: false", async () => {
    const { code, stderr, stdout } = await run("silent");
    expect(stdout).toBe(ANSWERS("The agent failed while it worked on this message."));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });
});
