import { Argument, type Command, Option } from "commander";
import type { DemoServerFlags } from "./commands/demo-server.ts";
import type { DoctorFlags } from "./commands/doctor.ts";
import type { InitFlags } from "./commands/init.ts";
import type { ServeFlags } from "./commands/serve.ts";
import type { StoreFlags, StorePruneFlags } from "./commands/store.ts";
import { declarePush } from "./declare-push-commands.ts";
import { declareSimulate } from "./declare-simulate-command.ts";
import { addExamples } from "./examples.ts";
import type { Output } from "./output.ts";

/** Repeated here, so that help and completion need not load the schema. */
const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"];

export function declareServerCommands(program: Command, output: Output): void {
  program.commandsGroup("Serving agents:");
  declareInit(program.command("init [dir]"), output);
  declareServe(program.command("serve [config]"), output);
  declareDemoServer(program.command("demo-server"), output);
  declareStore(program.command("store").description("look after a server's store").helpCommand(false), output);
  declarePush(program.command("push").description("push notifications").helpCommand(false), output, addStoreOptions);
  declareSimulate(
    program.command("simulate").description("stand in for a platform that agents are tested with").helpCommand(false),
    output,
  );
  declareDoctor(program.command("doctor [config]"), output);
  program.commandsGroup("Shell:");
  declareCompletion(program.command("completion"), program, output);
}

function declareInit(init: Command, output: Output): void {
  init
    .description("make a folder with an agent that runs")
    .option("--js", "JavaScript instead of TypeScript")
    .option("--force", "replace files that exist")
    .action(async (directory: string | undefined, flags: InitFlags) => {
      const { init: run } = await import("./commands/init.ts");
      await run(output, directory ?? ".", flags);
    });
  addExamples(init, [
    ["dragoman init my-agent", "a new folder"],
    ["dragoman init --js", "here, in JavaScript"],
  ]);
}

function declareServe(serve: Command, output: Output): void {
  serve
    .description("serve the agents of a configuration (default: ./dragoman.yaml)")
    .option("-p, --port <port>", "port to listen on, 0 for a free one (default: the configured one, else 4000)")
    .option("--grpc-port <port>", "port of gRPC, 0 for a free one, off for none (default: the one after --port)")
    .option("--host <address>", "address to listen on (default: the configured one, else 127.0.0.1)")
    .option("--store <spec>", "memory: or sqlite:<file>, instead of the configured one")
    .addOption(
      new Option("--log-level <level>", "how much to log (default: the configured one, else info)").choices(LOG_LEVELS),
    )
    .option("--watch", "load an agent again when its module or the configuration changes")
    .action(async (config: string | undefined, flags: ServeFlags) => {
      const { serve: run } = await import("./commands/serve.ts");
      await run(output, config, flags);
    });
  addExamples(serve, [
    ["dragoman serve", "what ./dragoman.yaml says"],
    ["dragoman serve agents.yaml --port 8080 --watch", "while writing an agent"],
  ]);
}

function declareDemoServer(demo: Command, output: Output): void {
  demo
    .description("serve the built-in agents from memory, to practise on; for this machine only, leaves nothing behind")
    .option("-p, --port <port>", "port to listen on, 0 for a free one (default: 4000)");
  demo.action(async (flags: DemoServerFlags) => {
    const { demoServer } = await import("./commands/demo-server.ts");
    await demoServer(output, flags);
  });
  addExamples(demo, [
    ["dragoman demo-server", "on port 4000, or a free one if that is taken"],
    ["dragoman demo-server --port 0", "on any free port"],
  ]);
}

function addStoreOptions(command: Command): Command {
  return command
    .option("--store <spec>", "the store, e.g. sqlite:.dragoman/data.db")
    .option("--config <file>", "take the store from this configuration (default: ./dragoman.yaml)")
    .addOption(new Option("-o, --output <format>", "text or json").choices(["text", "json"]).default("text"));
}

function declareStore(store: Command, output: Output): void {
  const stats = addStoreOptions(store.command("stats").description("count what is in the store")).action(
    async (flags: StoreFlags) => {
      const { storeStats } = await import("./commands/store.ts");
      await storeStats(output, flags);
    },
  );
  addExamples(stats, [["dragoman store stats", "the store of ./dragoman.yaml"]]);

  const migrate = addStoreOptions(
    store.command("migrate").description("bring the store to the form this version uses; serve does so by itself"),
  ).action(async (flags: StoreFlags) => {
    const { storeMigrate } = await import("./commands/store.ts");
    await storeMigrate(output, flags);
  });
  addExamples(migrate, [["dragoman store migrate --store sqlite:.dragoman/data.db", "before a new version starts"]]);

  const prune = addStoreOptions(
    store
      .command("prune")
      .description("delete tasks that ended long ago")
      .requiredOption("--older-than <duration>", "how long ago they ended at least, e.g. 30d")
      .option("-y, --yes", "do not ask"),
  ).action(async (flags: StorePruneFlags) => {
    const { storePrune } = await import("./commands/store.ts");
    await storePrune(output, flags);
  });
  addExamples(prune, [["dragoman store prune --older-than 30d --yes", "without a question"]]);
}

function declareDoctor(doctor: Command, output: Output): void {
  doctor
    .description(
      "check the set-up: Node, database driver, configuration, port, store, agents, security; exit 1 if something fails",
    )
    .option("--strict", "exit 1 for warnings, too: nothing weak may go into production")
    .option("--deep", "also read everything in the store, and name what is damaged")
    .option("--online", "also ask Xiaoyi whether it accepts the keys of each link, which ends a link that is open")
    .addOption(new Option("-o, --output <format>", "text or json").choices(["text", "json"]).default("text"))
    .action(async (config: string | undefined, flags: DoctorFlags) => {
      const { doctor: run } = await import("./commands/doctor.ts");
      await run(output, config, flags);
    });
  addExamples(doctor, [
    ["dragoman doctor", "everything ./dragoman.yaml needs"],
    ["dragoman doctor --strict", "before it goes into production"],
    ["dragoman doctor --deep", "after a crash of the disk, or before a backup is relied on"],
    ["dragoman doctor -o json", "for scripts"],
  ]);
}

function declareCompletion(completion: Command, program: Command, output: Output): void {
  completion
    .description("print a completion script for a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(["bash", "zsh", "fish"]))
    .action(async (shell: "bash" | "zsh" | "fish") => {
      const { completion: run } = await import("./commands/completion.ts");
      run(output, program, shell);
    });
  addExamples(completion, [
    ["source <(dragoman completion bash)", "bash, for this session"],
    ["dragoman completion zsh > ~/.zfunc/_dragoman", "zsh, with ~/.zfunc in fpath"],
    ["dragoman completion fish > ~/.config/fish/completions/dragoman.fish", "fish"],
  ]);
}
