import { Argument, type Command, Option } from "commander";
import {
  addExamples,
  addStoreOptions,
  COMMAND_GROUPS,
  collect,
  outputOption,
  type RunCommand,
} from "./declare-options.ts";
import type { Output } from "./output.ts";

/** Duplicated here so that help and completion do not load the schema. */
const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"];

export function declareServerCommands(program: Command, run: RunCommand, output: Output): void {
  program.commandsGroup(COMMAND_GROUPS.serving);
  declareInit(program.command("init [dir]"), run);
  declareServe(program.command("serve [config]"), run);
  declareDemoServer(program.command("demo-server"), run);
  declareStore(program.command("store").description("inspect and maintain a server's store").helpCommand(false), run);
  const push = program.command("push").description("push notifications").helpCommand(false);
  declareInbox(push.command("inbox"), run);
  declareDeliveries(addStoreOptions(push.command("deliveries")), run);
  declareRedeliver(addStoreOptions(push.command("redeliver [task]")), run);
  declareDoctor(program.command("doctor [config]"), run);
  program.commandsGroup("Shell:");
  declareCompletion(program.command("completion"), program, output);
}

function declareInit(init: Command, run: RunCommand): void {
  init
    .description("create a folder with a working agent")
    .option("--js", "JavaScript instead of TypeScript")
    .option("--force", "replace files that exist")
    .action(run(async () => (await import("./commands/init.ts")).init));
  addExamples(init, [
    ["dragoman init my-agent", "a new folder"],
    ["dragoman init --js", "here, in JavaScript"],
  ]);
}

function declareServe(serve: Command, run: RunCommand): void {
  serve
    .description("serve the agents of a configuration (default: ./dragoman.yaml)")
    .option("-p, --port <port>", "port to listen on, 0 for a free one (default: the configured one, else 4000)")
    .option("--grpc-port <port>", "port of gRPC, 0 for a free one, off for none (default: the one after --port)")
    .option("--host <address>", "address to listen on (default: the configured one, else 127.0.0.1)")
    .option("--store <spec>", "memory:, sqlite:<file> or postgres://user@host/database, instead of the configured one")
    .addOption(
      new Option("--log-level <level>", "how much to log (default: the configured one, else info)").choices(LOG_LEVELS),
    )
    .option(
      "--register <url>",
      "register the agents at this registry, or server that has one, as long as they are served; may be repeated",
      collect,
    )
    .option("--workers <count>", "processes that serve on the same ports, or auto for one per core; needs PostgreSQL")
    .option("--watch", "load an agent again when its module or the configuration changes")
    .action(run(async () => (await import("./commands/serve.ts")).serve));
  addExamples(serve, [
    ["dragoman serve", "what ./dragoman.yaml says"],
    ["dragoman serve agents.yaml --port 8080 --watch", "while writing an agent"],
    ["dragoman serve --store postgres://dragoman@db.example.com/dragoman --workers auto", "on all cores"],
    ["dragoman serve --port 4001 --register http://127.0.0.1:4000", "so that others find the agents there"],
  ]);
}

function declareDemoServer(demo: Command, run: RunCommand): void {
  demo
    .description("serve the built-in agents for experiments: from memory, on loopback only")
    .option("-p, --port <port>", "port to listen on, 0 for a free one (default: 4000)");
  demo.action(run(async () => (await import("./commands/serve.ts")).demoServer));
  addExamples(demo, [
    ["dragoman demo-server", "on port 4000, or a free one if that is taken"],
    ["dragoman demo-server --port 0", "on any free port"],
  ]);
}

function declareStore(store: Command, run: RunCommand): void {
  const stats = addStoreOptions(store.command("stats"))
    .description("count what is in the store, what it takes up, and what retention is about to free")
    .action(run(async () => (await import("./commands/store.ts")).storeStats));
  addExamples(stats, [["dragoman store stats", "the store of ./dragoman.yaml"]]);

  const migrate = addStoreOptions(store.command("migrate"))
    .description("migrate the store to the schema of this version; serve does this automatically")
    .action(run(async () => (await import("./commands/store.ts")).storeMigrate));
  addExamples(migrate, [["dragoman store migrate --store sqlite:.dragoman/data.db", "before a new version starts"]]);

  const vacuum = addStoreOptions(store.command("vacuum"))
    .description(
      "rewrite the file of the store without unused space; no server may use it, and it takes up to twice its content in free disk space",
    )
    .action(run(async () => (await import("./commands/store.ts")).storeVacuum));
  addExamples(vacuum, [["dragoman store vacuum", "once, for a file that does not shrink by itself"]]);

  const prune = store
    .command("prune")
    .description("delete tasks that ended long ago")
    .requiredOption("--older-than <duration>", "how long ago they ended at least, e.g. 30d")
    .option("-y, --yes", "do not ask")
    .action(run(async () => (await import("./commands/store.ts")).storePrune));
  addStoreOptions(prune);
  addExamples(prune, [["dragoman store prune --older-than 30d --yes", "without a question"]]);
}

function declareDoctor(doctor: Command, run: RunCommand): void {
  doctor
    .description(
      "check the set-up: Node, database driver, configuration, port, store, agents, security; and probe every agent of the configuration and of its registry: does it do what its card says? Exit 1 if something fails",
    )
    .option("--strict", "exit 1 for warnings, too")
    .option("--deep", "also read everything in the store, and name what is damaged")
    .option("--online", "also ask Xiaoyi whether it accepts the keys of each link, which ends a link that is open")
    .option("--no-probe", "call no agent, model or registry")
    .option("--registry <url>", "probe the agents of this registry (default: that of the running server)")
    .option("--agent <name>", "probe only this agent, by its name or its id in the registry; may be repeated", collect)
    .option("--send", "also send the first example of every skill: real messages, which may cost money or have effects")
    .option("--allow-private-targets", "also probe agents of a registry that are in private networks")
    .option("--probe-timeout <duration>", "how long one agent may take (default: 15s, with --send 2m)")
    .addOption(outputOption())
    .action(run(async () => (await import("./commands/doctor.ts")).doctor));
  addExamples(doctor, [
    ["dragoman doctor", "everything ./dragoman.yaml needs"],
    ["dragoman doctor --strict", "before it goes into production"],
    ["dragoman doctor --deep", "after a disk failure, or to check a backup"],
    ["dragoman doctor -o json", "for scripts"],
    ["dragoman doctor --registry https://registry.example.com", "the agents that others offer"],
    ["dragoman doctor --agent weather --send", "whether one agent answers the examples of its card"],
  ]);
}

function declareCompletion(completion: Command, program: Command, output: Output): void {
  completion
    .description("print a completion script for a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(["bash", "zsh", "fish"]))
    .action(async (shell: "bash" | "zsh" | "fish") => {
      const { completion: print } = await import("./commands/completion.ts");
      print(output, program, shell);
    });
  addExamples(completion, [
    ["source <(dragoman completion bash)", "bash, for this session"],
    ["dragoman completion zsh > ~/.zfunc/_dragoman", "zsh, with ~/.zfunc in fpath"],
    ["dragoman completion fish > ~/.config/fish/completions/dragoman.fish", "fish"],
  ]);
}

function declareInbox(inbox: Command, run: RunCommand): void {
  inbox
    .description("receive push notifications, check and print them; a shared secret is taken from DRAGOMAN_PUSH_SECRET")
    .option("-p, --port <port>", "port to listen on, 0 for a free one", "4100")
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--token <token>", "refuse notifications without this token")
    .option("--jwks <url>", "refuse notifications without a token signed by one of these keys")
    .option("--issuer <issuer>", "who must have signed it")
    .option("--public-url <url>", "how senders reach this receiver, if not by host and port")
    .option("--fail <percent>", "answer this percentage with 503, to test retries")
    .option("--count <number>", "exit after this many notifications")
    .addOption(outputOption())
    .action(run(async () => (await import("./commands/push-inbox.ts")).pushInbox));
  addExamples(inbox, [
    ["dragoman push inbox --token sesame", "a webhook for this machine, at http://127.0.0.1:4100"],
    ["dragoman push inbox --fail 30 -o json", "a webhook that fails at times, with output for scripts"],
    [
      "dragoman push inbox --jwks http://127.0.0.1:4000/.well-known/jwks.json",
      "with the keys that the server publishes",
    ],
  ]);
}

function declareDeliveries(deliveries: Command, run: RunCommand): void {
  deliveries
    .description("list push notifications that are pending or have failed for good; also while the server runs")
    .option("--dead", "only those that were given up")
    .option("--task <id>", "only those of this task")
    .action(run(async () => (await import("./commands/push-deliveries.ts")).pushDeliveries));
  addExamples(deliveries, [["dragoman push deliveries --dead", "what was given up, in the store of ./dragoman.yaml"]]);
}

function declareRedeliver(redeliver: Command, run: RunCommand): void {
  redeliver
    .description("retry push notifications that have failed; also while the server runs")
    .option("--all", "whatever was given up, of all tasks")
    .option("--id <config>", "only this push config of the task")
    .option("--from <number>", "from this event on, also what was delivered before")
    .action(run(async () => (await import("./commands/push-deliveries.ts")).pushRedeliver));
  addExamples(redeliver, [
    ["dragoman push redeliver --all", "when the receivers are back"],
    ["dragoman push redeliver 0190c2de-0000-7000-8000-000000000000 --from 1", "one task, from its beginning"],
  ]);
}
