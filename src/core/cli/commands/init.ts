import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { CommandError } from "../errors.ts";
import type { Output } from "../output.ts";
import { quoteForShell } from "../render/text.ts";
import { packageDependency } from "../version.ts";

export interface InitFlags {
  readonly js?: boolean;
  readonly force?: boolean;
}

/** Creates a folder with a runnable agent. Existing files are not overwritten unless requested. */
export async function init(output: Output, directory: string | undefined, flags: InitFlags): Promise<void> {
  const root = resolve(directory ?? ".");
  const dependency = packageDependency(root);
  const files = scaffold({
    name: packageName(basename(root)),
    language: flags.js === true ? "js" : "ts",
    dependency,
  });
  const inTheWay = Object.keys(files).filter((path) => existsSync(join(root, path)));
  if (inTheWay.length > 0 && flags.force !== true) {
    throw new CommandError(
      "DRAGOMAN_ERR_FILE_EXISTS",
      `Already in ${root}: ${inTheWay.join(", ")}. Nothing was written.`,
      "Choose another folder, or replace these files with --force.",
    );
  }
  for (const [path, content] of Object.entries(files)) {
    const file = join(root, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content, { flag: flags.force === true ? "w" : "wx" });
    output.write(`Created: ${relative(".", file) || file}\n`);
  }
  printNextSteps(output, relative(".", root));
  if (dependency.startsWith("file:"))
    output.info([
      "",
      `package.json takes dragoman from this machine (${dependency}): nothing shows that it was installed from a registry.`,
    ]);
}

function printNextSteps(output: Output, folder: string): void {
  const steps = [
    ...(folder === "" ? [] : [`cd ${quoteForShell(folder)}`]),
    "npm install",
    "npm start",
    "npx dragoman send -a http://127.0.0.1:4000/agents/hello/ --text Ada   # in another terminal",
  ];
  output.info(["", "Next:", ...steps.map((step) => `  ${step}`)]);
}

/** A valid npm package name derived from the folder's name. */
export function packageName(folder: string): string {
  const plain = folder
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[._-]+|[-]+$/g, "");
  return plain === "" ? "my-agent" : plain;
}

export interface ScaffoldOptions {
  readonly name: string;
  readonly language: "ts" | "js";
  /** The dependency specifier of this package as npm writes it: a range or a path. */
  readonly dependency: string;
}

/** The files of a new project, keyed by path. */
export function scaffold(options: ScaffoldOptions): Readonly<Record<string, string>> {
  const agentFile = `agents/hello.${options.language}`;
  return {
    "package.json": packageJson(options),
    "dragoman.yaml": configFile(agentFile),
    [agentFile]: agentModule(options.language),
    "README.md": readme(options.name, agentFile),
    ".gitignore": "node_modules/\n.dragoman/\n.env\n",
  };
}

function packageJson({ name, dependency }: ScaffoldOptions): string {
  const content = {
    name,
    version: "0.1.0",
    private: true,
    type: "module",
    scripts: { start: "dragoman serve", dev: "dragoman serve --watch", doctor: "dragoman doctor" },
    dependencies: { dragoman: dependency },
  };
  return `${JSON.stringify(content, undefined, 2)}\n`;
}

function configFile(agentFile: string): string {
  return `server: { host: 127.0.0.1, port: 4000 }
store: sqlite:.dragoman/data.db   # "memory:" forgets everything at the end
default: hello
agents:
  hello: { module: ./${agentFile} }
  echo: { use: echo }
`;
}

function agentModule(language: ScaffoldOptions["language"]): string {
  const parameter = language === "ts" ? "name: string" : "name";
  return `import { defineAgent } from "dragoman";

export default defineAgent({
  name: "Hello",
  description: "Greets people by name.",
  version: "0.1.0",
  skills: [{ id: "greet", name: "Greet", description: "A name in, a greeting out.", tags: ["example"] }],
  async *run(turn) {
    yield turn.working("Thinking of something nice to say");
    if (!turn.text) {
      yield turn.inputRequired("Who are you?");
      return;
    }
    yield* turn.stream("greeting", greet(turn.text));
  },
});

async function* greet(${parameter}) {
  for (const word of ["Hello, ", name, "! ", "Good to see you."]) yield word;
}
`;
}

function readme(name: string, agentFile: string): string {
  return `# ${name}

An agent that any A2A client can call. What it does is in \`${agentFile}\`; how it is served is in \`dragoman.yaml\`.

    npm install
    npm start

Then, in another terminal:

    npx dragoman send -a http://127.0.0.1:4000/agents/hello/ --text Ada
    npx dragoman chat -a http://127.0.0.1:4000/agents/hello/
    curl http://127.0.0.1:4000/agents/hello/.well-known/agent-card.json

\`npm run dev\` reloads the agent when its file changes. \`npm run doctor\` checks the set-up.
`;
}
