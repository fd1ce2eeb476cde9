import type { AgentCredentials, OAuthCredential, StoredCredential } from "../../auth/login/contract.ts";
import { secretsOf } from "../../auth/login/stored-credential.ts";
import { CommandError, usage } from "../errors.ts";
import { type Output, printJson } from "../output.ts";
import { jsonForm } from "../report.ts";
import { type ClientFlags, resolveCard, type Session, withSession } from "../session.ts";
import { agentOrigin, isLoopbackOrigin, openVault, originOfTarget } from "../stored-credentials.ts";
import { field } from "../text-form.ts";

export interface AuthLogoutFlags extends ClientFlags {
  readonly scheme?: string;
  readonly all?: boolean;
}

interface Removed {
  readonly agent: string;
  readonly scheme: string;
  /** Whether the authorization server was told; null where there is nothing to tell. */
  readonly revoked: boolean | null;
}

export function authLogout(output: Output, flags: AuthLogoutFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const vault = openVault(output);
    const kept = flags.all === true ? await vault.list() : await vault.list().then(only(await namedAgent(session)));
    const removed: Removed[] = [];
    for (const credentials of kept) {
      const names = Object.keys(credentials.schemes).filter((name) => (flags.scheme ?? name) === name);
      for (const name of names) removed.push(await giveBack(session, credentials, name));
      await vault.update(credentials.agent, (current) => ({
        ...current,
        schemes: Object.fromEntries(Object.entries(current.schemes).filter(([name]) => !names.includes(name))),
      }));
    }
    if (removed.length === 0 && flags.all !== true) {
      throw new CommandError(
        "A2ACLI_ERR_CREDENTIALS_MISSING",
        "There is no such login.",
        "dragoman auth status lists all.",
      );
    }
    if (session.settings.output === "json") printJson(output, removed, jsonForm(session));
    else output.data(removed.map(({ agent, scheme }) => field("Logged Out", `${agent} ${scheme}`)).join(""));
  });
}

const only = (agent: string) => (all: readonly AgentCredentials[]) => all.filter((one) => one.agent === agent);

/** Told from the address alone where possible: an agent that is gone must not keep anyone logged in. */
export async function namedAgent(session: Session): Promise<string> {
  const { agentCard } = session.settings;
  if (agentCard === undefined) throw usage("No agent is named.", "Name one with -a/--agent-card, or take --all.");
  const origin = originOfTarget(agentCard);
  if (origin !== undefined) return origin;
  const { card, url } = await resolveCard(session);
  const found = agentOrigin(url, card);
  if (found === undefined) throw usage("The card names no address.");
  return found;
}

async function giveBack({ output }: Session, { agent, schemes }: AgentCredentials, name: string): Promise<Removed> {
  const credential = schemes[name] as StoredCredential;
  for (const secret of secretsOf(credential)) output.hide(secret);
  if (credential.kind !== "oauth") return { agent, scheme: name, revoked: null };
  return { agent, scheme: name, revoked: await tellServer(output, agent, credential) };
}

async function tellServer(output: Output, agent: string, credential: OAuthCredential): Promise<boolean> {
  const { revoke } = await import("../../auth/login/oauth/tokens.ts");
  try {
    return await revoke(credential, { fetch: globalThis.fetch, allowLoopback: isLoopbackOrigin(agent) });
  } catch (error) {
    // The tokens are forgotten here in any case; what the server still believes ends with their lifetime.
    output.warn(`The tokens could not be revoked: ${error instanceof Error ? error.message : String(error)}`);
    return false;
  }
}
