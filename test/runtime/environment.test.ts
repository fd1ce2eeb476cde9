import { beforeAll, expect, test } from "vitest";
import { runCli } from "../built/cli.ts";
import { ServedFolder } from "./served-folder.ts";

const served = new ServedFolder({
  ".env": "# for this project\nGREETING=from the file\nPLACE='also from the file'\nMODE=file\n",
  "dragoman.yaml": `
store: "memory:"
agents:
  program: { exec: [sh, -c, 'echo "$1, $PLACE, $MODE"', sh, "\${GREETING}"] }
  module: { module: ./agent.ts, description: "Greets \${GREETING}" }
`,
  "agent.ts": `import { defineAgent } from "dragoman";
export default defineAgent({ name: "M", description: "m", run: () => process.env.PLACE + ", " + process.env.MODE });`,
});
beforeAll(() => served.start([], { MODE: "environment" }));

test("the configuration, programs and modules have the variables of .env, and the environment wins over it", async () => {
  const task = await served.send("program", "go");
  expect(task.artifacts?.[0]?.parts[0]?.text).toBe("from the file, also from the file, environment\n");
  expect(await served.ask("module", "go")).toBe("also from the file, environment");
});

test("commands that show the configuration read the same file", async () => {
  const shown = await runCli(["config", "show", "dragoman.yaml", "-o", "json"], { folder: served.folder });
  expect(shown.stdout).toContain("Greets from the file");
  const checked = await runCli(["doctor"], { folder: served.folder });
  expect(checked.stdout).toMatch(/^ok +agent module/m);
});
