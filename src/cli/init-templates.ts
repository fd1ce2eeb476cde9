export interface ScaffoldOptions {
  readonly name: string;
  readonly language: "ts" | "js";
  /** How the project names this package, as npm writes it: a range or a place. */
  readonly dependency: string;
}

/** The files of a new project by path. */
export function scaffold(options: ScaffoldOptions): Readonly<Record<string, string>> {
  const agentFile = `agents/hello.${options.language}`;
  return {
    "package.json": manifest(options),
    "dragoman.yaml": config(agentFile),
    [agentFile]: agent(options.language),
    "README.md": readme(options.name, agentFile),
    ".gitignore": "node_modules/\n.dragoman/\n.env\n",
  };
}

function manifest({ name, dependency }: ScaffoldOptions): string {
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

function config(agentFile: string): string {
  return `server: { host: 127.0.0.1, port: 4000 }
store: sqlite:.dragoman/data.db   # "memory:" forgets everything at the end
default: hello
agents:
  hello: { module: ./${agentFile} }
  echo: { use: echo }
`;
}

function agent(language: ScaffoldOptions["language"]): string {
  const parameter = language === "ts" ? "name: string" : "name";
  return `import { defineAgent } from "dragoman";

export default defineAgent({
  name: "Hello",
  description: "Greets whoever says a name.",
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

An agent that anyone who speaks A2A can call. What it does is in \`${agentFile}\`; how it is served is in \`dragoman.yaml\`.

    npm install
    npm start

Then, in another terminal:

    npx dragoman send -a http://127.0.0.1:4000/agents/hello --text Ada
    npx dragoman chat -a http://127.0.0.1:4000/agents/hello
    curl http://127.0.0.1:4000/agents/hello/.well-known/agent-card.json

\`npm run dev\` loads the agent anew when its file changes. \`npm run doctor\` checks the set-up.
`;
}
