import type { Command } from "commander";
import {
  addAgentOptions,
  addExamples,
  addSettings,
  collect,
  EXAMPLE_AGENT,
  type RunCommand,
} from "./declare-options.ts";

export function declareTask(task: Command, run: RunCommand): void {
  const get = task
    .command("get [task-id]")
    .description("show a task: its state, its artifacts and, with --history, its messages")
    .option("--history <n>", "show up to this many of the newest messages");
  addSettings(get, ["wait", "taskId"]);
  addAgentOptions(get);
  get.action(run(async () => (await import("./commands/task.ts")).taskGet));
  addExamples(get, [
    [`dragoman task get -a ${EXAMPLE_AGENT} TASK`, "as it stands now"],
    [`dragoman task get -a ${EXAMPLE_AGENT} --wait --timeout 5m TASK`, "wait for its end, five minutes at most"],
  ]);

  declareTaskList(task.command("list"), run);

  const cancel = task
    .command("cancel [task-id]")
    .description("cancel a task that has not ended and show how it stands");
  addSettings(cancel, ["taskId", "metadata"]);
  addAgentOptions(cancel);
  cancel.action(run(async () => (await import("./commands/task.ts")).taskCancel));
  addExamples(cancel, [[`dragoman task cancel -a ${EXAMPLE_AGENT} TASK`, "stop the agent's work on it"]]);

  const subscribe = task
    .command("subscribe [task-id]")
    .description("follow the events of a task that has not ended")
    .option("--after <n>", "continue after this event number, with agents that number their events");
  addSettings(subscribe, ["taskId"]);
  addAgentOptions(subscribe, "with -o json: one event per line instead of the task at its end");
  subscribe.action(run(async () => (await import("./commands/task.ts")).taskSubscribe));
  addExamples(subscribe, [
    [`dragoman task subscribe -a ${EXAMPLE_AGENT} TASK`, "events as text"],
    [`dragoman task subscribe -a ${EXAMPLE_AGENT} TASK -o json --stream`, "events as JSON lines"],
  ]);

  declareTaskDownload(task.command("download [task-id]"), run);
  declarePushConfig(
    task
      .command("push-config")
      .description("manage the webhooks that an agent notifies about a task")
      .helpCommand(false),
    run,
  );
}

function declareTaskList(list: Command, run: RunCommand): void {
  list
    .description("list tasks, most recently changed first")
    .option("--status <state>", "only tasks in this state, e.g. working or input-required")
    .option("--page-size <n>", "tasks per page, 1 to 100 (default: the agent's)")
    .option("--page-token <token>", "the page to show, as the page before names it")
    .option("--all", "all pages")
    .option("--since <time>", "only tasks whose state changed at or after this time")
    .option("--history <n>", "include up to this many of the newest messages")
    .option("--include-artifacts", "include the artifacts of the tasks");
  addSettings(list, ["contextId"], { contextId: "only tasks of this context" });
  addAgentOptions(list);
  list.action(run(async () => (await import("./commands/task.ts")).taskList));
  addExamples(list, [
    [`dragoman task list -a ${EXAMPLE_AGENT}`, "the first page"],
    [`dragoman task list -a ${EXAMPLE_AGENT} --status input-required --all -o json`, "all that wait for someone"],
  ]);
}

function declareTaskDownload(download: Command, run: RunCommand): void {
  download
    .description("save the artifacts of a task, one file per part")
    .option("-d, --directory <path>", "where to save (default: here)")
    .option("--artifact <id>", "only this artifact, by id or name; may be repeated", collect)
    .option("--force", "replace files that exist")
    .option("--fetch-urls", "also download parts that are only links; without any credential")
    .option(
      "--allow-host <host>",
      "links may lead to this host, address or range in a private network, too; may be repeated",
      collect,
    );
  addSettings(download, ["taskId"]);
  addAgentOptions(download);
  download.action(run(async () => (await import("./commands/task-download.ts")).taskDownload));
  addExamples(download, [[`dragoman task download -a ${EXAMPLE_AGENT} TASK -d results`, "every part into results/"]]);
}

function declarePushConfig(config: Command, run: RunCommand): void {
  const create = config
    .command("create <task>")
    .description("have the agent notify a webhook about a task")
    .requiredOption("--url <url>", "address of the webhook")
    .option("--id <id>", "id of the config (default: the agent assigns one)")
    .option("--token <token>", "sent with every notification, so that the webhook knows its sender [A2ACLI_TOKEN]")
    .option("--auth-scheme <scheme>", "HTTP authentication that the webhook requires, e.g. Bearer or Basic")
    .option("--auth-credentials <value>", "credentials of that scheme; prefer the variable [A2ACLI_AUTH_CREDENTIALS]");
  addAgentOptions(create);
  create.action(run(async () => (await import("./commands/push-config.ts")).pushConfigCreate));
  addExamples(create, [
    [
      `dragoman task push-config create -a ${EXAMPLE_AGENT} TASK --url https://hooks.example.com/a2a --token sesame`,
      "notify a webhook; dragoman push inbox is one to try it with",
    ],
  ]);

  const get = config.command("get <task> <config>").description("show one webhook of a task");
  addAgentOptions(get);
  get.action(run(async () => (await import("./commands/push-config.ts")).pushConfigGet));
  addExamples(get, [[`dragoman task push-config get -a ${EXAMPLE_AGENT} TASK CONFIG`, "without its secrets"]]);

  const list = config.command("list <task>").description("list the webhooks of a task");
  addAgentOptions(list);
  list.action(run(async () => (await import("./commands/push-config.ts")).pushConfigList));
  addExamples(list, [[`dragoman task push-config list -a ${EXAMPLE_AGENT} TASK -o json`, "all, as one document"]]);

  const remove = config.command("delete <task> <config>").description("remove a webhook of a task");
  addAgentOptions(remove);
  remove.action(run(async () => (await import("./commands/push-config.ts")).pushConfigDelete));
  addExamples(remove, [[`dragoman task push-config delete -a ${EXAMPLE_AGENT} TASK CONFIG`, "no more notifications"]]);
}
