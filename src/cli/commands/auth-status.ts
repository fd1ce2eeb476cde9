import { renderCredential, viewCredential } from "../credential-view.ts";
import { Ended, EXIT } from "../exit-codes.ts";
import { type Output, printJson } from "../output.ts";
import { jsonForm } from "../report.ts";
import { type ClientFlags, commandLine, withSession } from "../session.ts";
import { credentialFolder, openVault } from "../stored-credentials.ts";
import { namedAgent } from "./auth-logout.ts";

/** Without an agent, all logins. With one, whether it can be called: exit 4 if nobody is logged in, or not any more. */
export function authStatus(output: Output, flags: ClientFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const { settings } = session;
    const agent = settings.agentCard === undefined ? undefined : await namedAgent(session);
    const kept = (await openVault(output).list()).filter((one) => (agent ?? one.agent) === one.agent);
    const views = kept.flatMap((one) =>
      Object.entries(one.schemes).map(([name, credential]) => viewCredential(one.agent, name, credential, Date.now())),
    );
    if (settings.output === "json") printJson(output, views, jsonForm(session));
    else output.data(views.map(renderCredential).join(""));
    if (settings.verbose) output.talk(`Logins are kept in ${credentialFolder()}`);
    if (agent === undefined) {
      if (views.length === 0) output.talk("There are no logins.");
      return;
    }
    if (views.some(({ state }) => state !== "expired")) return;
    const what = views.length === 0 ? "Not logged in" : "The login has expired";
    output.talk(`${what}. Run: ${commandLine(settings, "auth login")}`);
    throw new Ended(EXIT.authentication);
  });
}
