import { type Command, Option } from "commander";
import {
  EXAMPLE_AGENT as AGENT,
  addAgentOptions,
  addExamples,
  addPartOptions,
  addSettings,
  COMMAND_GROUPS,
  collect,
  type RunCommand,
} from "./declare-options.ts";
import { declareTask } from "./declare-task-commands.ts";

export function declareAgentCommands(program: Command, run: RunCommand): void {
  program.commandsGroup(COMMAND_GROUPS.calling);
  declareCard(program.command("card").description("read, sign and verify agent cards").helpCommand(false), run);
  declareSend(program.command("send [message...]"), run);
  declareChat(program.command("chat"), run);
  declareTask(program.command("task").description("show, follow, cancel and list tasks").helpCommand(false), run);
  declareAuth(program.command("auth").description("log in to agents").helpCommand(false), run);
  declareConfig(program.command("config").description("show the configuration").helpCommand(false), run);
}

function declareCard(card: Command, run: RunCommand): void {
  const get = card
    .command("get")
    .description("fetch an agent's card and show who it is, what it can do and how it is reached")
    .option("--validate", "validate the card against A2A 1.0; exit 1 if it is invalid")
    .option("--extended", "fetch the card for authenticated callers")
    .action(run(async () => (await import("./commands/card.ts")).cardGet));
  addAgentOptions(get);
  addExamples(get, [
    [`dragoman card get -a ${AGENT}`, "the card as text"],
    ["dragoman card get -a agents.example.com --validate", "check the card of a host"],
    ["dragoman card get -a ./card.json -o json", "a card from a file"],
  ]);

  const verify = card
    .command("verify [file]")
    .description("check who signed an agent's card and what of it; exit 0 only if a trusted key did")
    .action(run(async () => (await import("./commands/card.ts")).cardVerify));
  addAgentOptions(verify);
  addExamples(verify, [
    ["dragoman card verify -a agents.example.com --card-key agents.pem", "with a local key"],
    ["dragoman card verify card.json --jku-origin https://agents.example.com", "with the key that the signature names"],
  ]);

  const sign = card
    .command("sign <file>")
    .description("sign a card of A2A 1.0 and print it with its signature")
    .requiredOption("--key <file>", "private key: an unencrypted PEM or a JWK")
    .requiredOption("--kid <id>", "id of the key, by which verifiers find it")
    .option("--alg <name>", "ES256, EdDSA or RS256 (default: what the key is made for)")
    .option("--jku <url>", "https address of the public key set")
    .option("--out <file>", "write the signed card there instead of to standard output")
    .action(run(async () => (await import("./commands/card.ts")).cardSign));
  addExamples(sign, [["dragoman card sign card.json --key key.pem --kid 2026-01", "the card with its signature"]]);
}

function declareSend(send: Command, run: RunCommand): void {
  send.description("send a message to start or continue an interaction, and wait for the outcome");
  addPartOptions(send);
  addSettings(send, ["contextId", "taskId", "metadata", "async"], {
    contextId: "start a new task in this context",
    taskId: "continue this task, e.g. one that waits for a reply",
  });
  addSettings(send, ["wait"]);
  send.addOption(new Option("--return-immediately", "same as --async").hideHelp());
  send.addOption(new Option("--no-wait", "same as --async").hideHelp());
  send.option("--accepted-output <type>", "media type the agent may answer with; may be repeated", collect);
  addAgentOptions(send, "follow the agent's events as they come, with -o json one per line");
  send.action(run(async () => (await import("./commands/send.ts")).send));
  addExamples(send, [
    [`dragoman send -a ${AGENT} --text hello`, "the answer, and the ids to continue with"],
    [`dragoman send -a ${AGENT} --stream "Write a haiku"`, "the answer while it is written"],
    [`dragoman send -a ${AGENT} --text "What is this?" --file photo.png -o json`, "two parts; the answer as JSON"],
    [`dragoman send -a ${AGENT} --task-id TASK --text yes`, "reply to a task that waits for input"],
    [`echo '{"n":1}' | dragoman send -a ${AGENT} --data -`, "structured data from a pipe"],
    [`dragoman send -a ${AGENT} --async --text "Take your time"`, "leave at once; task get --wait later"],
  ]);
}

function declareChat(chat: Command, run: RunCommand): void {
  chat.description("talk with an agent over several turns; /cancel ends the current task, /quit leaves");
  addSettings(chat, ["contextId", "taskId", "metadata"], {
    contextId: "continue in this context",
    taskId: "begin with a reply to this task",
  });
  addAgentOptions(chat);
  chat.action(run(async () => (await import("./commands/chat.ts")).chat));
  addExamples(chat, [
    [`dragoman chat -a ${AGENT}`, "at a terminal"],
    [`printf 'hello\\nand again\\n' | dragoman chat -a ${AGENT}`, "the turns from a pipe, one per line"],
  ]);
}

function declareConfig(config: Command, run: RunCommand): void {
  const show = config
    .command("show [file]")
    .description(
      "show the settings in effect and where each comes from; with a dragoman.yaml, the configuration of the server with all defaults",
    )
    .action(run(async () => (await import("./commands/config-show.ts")).configShow));
  addSettings(show, ["contextId", "taskId", "async", "wait", "metadata"]);
  addAgentOptions(show);
  addExamples(show, [
    ["dragoman config show", "the effective settings from flags, variables and files"],
    ["dragoman config show dragoman.yaml", "a server's configuration with its defaults, secrets left out"],
  ]);
}

const REMOTE_AGENT = "https://agents.example.com";

function declareAuth(auth: Command, run: RunCommand): void {
  declareLogin(auth.command("login"), run);
  declareLogout(auth.command("logout"), run);
  declareStatus(auth.command("status"), run);
}

function declareLogin(login: Command, run: RunCommand): void {
  login
    .description(
      "log in to an agent with a scheme of its card; later commands use the login. Secrets come from a prompt, a variable or standard input",
    )
    .option("--scheme <name>", "the security scheme of the card to log in for (default: the first that can be used)")
    .addOption(
      new Option("--flow <flow>", "how to get tokens (default: as the card says)").choices([
        "authorization-code",
        "device-code",
        "client-credentials",
      ]),
    )
    .option("--device", "log in with a code on another device; same as --flow device-code")
    .option("--client-id <id>", "client the authorization server knows [A2ACLI_CLIENT_ID]")
    .option("--client-secret-stdin", "read the client's secret from standard input [A2ACLI_CLIENT_SECRET]")
    .option("--secret-stdin", "read the key, token or password from standard input [A2ACLI_PASSWORD for passwords]")
    .option("--user <name>", "user name, where the agent asks for name and password")
    .option("--scopes <scopes>", "scopes to ask for (default: those the card requires); may be repeated", collect)
    .option("--resource <uri>", "resource that the token is for, with servers that ask for it (RFC 8707)")
    .option("--issuer <url>", "the only authorization server to accept")
    .option("--redirect-port <port>", "port the browser comes back to (default: any free one)")
    .option(
      "--share",
      "use the login also for other agents of this host whose cards name the same authorization server",
    );
  addAgentOptions(login);
  login.action(run(async () => (await import("./commands/auth-login.ts")).authLogin));
  addExamples(login, [
    [`dragoman auth login -a ${REMOTE_AGENT}`, "prompts for what the card requires"],
    [`dragoman auth login -a ${REMOTE_AGENT} --client-id my-cli`, "in a browser; its address is printed"],
    [`dragoman auth login -a ${REMOTE_AGENT} --client-id my-cli --device`, "with a code, on another device"],
    [
      `dragoman auth login -a ${REMOTE_AGENT} --client-id job --client-secret-stdin --flow client-credentials < secret`,
      "for a program, without a user",
    ],
    [`dragoman auth login -a ${REMOTE_AGENT} --scheme key --secret-stdin < key`, "an API key"],
  ]);
}

function declareLogout(logout: Command, run: RunCommand): void {
  logout
    .description("log out: delete the login and revoke its tokens")
    .option("--scheme <name>", "only the login for this scheme")
    .option("--all", "all logins of all agents");
  addAgentOptions(logout);
  logout.action(run(async () => (await import("./commands/auth.ts")).authLogout));
  addExamples(logout, [[`dragoman auth logout -a ${REMOTE_AGENT}`, "all logins for this agent"]]);
}

function declareStatus(status: Command, run: RunCommand): void {
  status.description(
    "show the logins there are, without their secrets; with -a, exit 4 if there is none that can be used",
  );
  addAgentOptions(status);
  status.action(run(async () => (await import("./commands/auth.ts")).authStatus));
  addExamples(status, [
    ["dragoman auth status", "all logins"],
    [`dragoman auth status -a ${REMOTE_AGENT} -o json`, "those for one agent"],
  ]);
}
