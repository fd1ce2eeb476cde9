import { type Command, Option } from "commander";
import type { AuthLogoutFlags } from "./commands/auth.ts";
import type { AuthLoginFlags } from "./commands/auth-login.ts";
import { addAgentOptions, addExamples, collect } from "./declare-options.ts";
import type { Output } from "./output.ts";
import type { ClientFlags } from "./session/session.ts";

const AGENT = "https://agents.example.com";

export function declareAuth(auth: Command, output: Output): void {
  declareLogin(auth.command("login"), output);
  declareLogout(auth.command("logout"), output);
  declareStatus(auth.command("status"), output);
}

function declareLogin(login: Command, output: Output): void {
  login
    .description(
      "log in to an agent in a way its card asks for; the commands that follow use the login. Secrets come from a prompt, a variable or standard input",
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
    .option("--redirect-port <port>", "port the browser comes back to (default: any free one)");
  addAgentOptions(login);
  login.action(async (flags: AuthLoginFlags) => {
    const { authLogin } = await import("./commands/auth-login.ts");
    await authLogin(output, flags);
  });
  addExamples(login, [
    [`dragoman auth login -a ${AGENT}`, "asks for what the card wants"],
    [`dragoman auth login -a ${AGENT} --client-id my-cli`, "in a browser; its address is printed"],
    [`dragoman auth login -a ${AGENT} --client-id my-cli --device`, "with a code, on another device"],
    [
      `dragoman auth login -a ${AGENT} --client-id job --client-secret-stdin --flow client-credentials < secret`,
      "a program, without a person",
    ],
    [`dragoman auth login -a ${AGENT} --scheme key --secret-stdin < key`, "an API key"],
  ]);
}

function declareLogout(logout: Command, output: Output): void {
  logout
    .description("forget a login, and tell its authorization server")
    .option("--scheme <name>", "only the login for this scheme")
    .option("--all", "all logins of all agents");
  addAgentOptions(logout);
  logout.action(async (flags: AuthLogoutFlags) => {
    const { authLogout } = await import("./commands/auth.ts");
    await authLogout(output, flags);
  });
  addExamples(logout, [[`dragoman auth logout -a ${AGENT}`, "all logins for this agent"]]);
}

function declareStatus(status: Command, output: Output): void {
  status.description(
    "show the logins there are, without their secrets; with -a, exit 4 if there is none that can be used",
  );
  addAgentOptions(status);
  status.action(async (flags: ClientFlags) => {
    const { authStatus } = await import("./commands/auth.ts");
    await authStatus(output, flags);
  });
  addExamples(status, [
    ["dragoman auth status", "all logins"],
    [`dragoman auth status -a ${AGENT} -o json`, "those for one agent"],
  ]);
}
