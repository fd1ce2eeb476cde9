import type { StoredCredential } from "../../auth/login/contract.ts";
import { secretsOf } from "../../auth/login/stored-credentials.ts";
import { CommandError, CommandExit, EXIT, usageError } from "../errors.ts";
import type { Output } from "../output.ts";
import { field } from "../render/text.ts";
import { agentUrl, agentUrlOfTarget, credentialFolder, isLoopbackOrigin, openVault } from "../session/credentials.ts";
import { reportResult } from "../session/report.ts";
import { type ClientFlags, resolveCard, type Session, withSession } from "../session/session.ts";
import { commandLine } from "../settings/read.ts";

/** A stored credential for display, without its secrets. */
export interface CredentialView {
  readonly agent: string;
  readonly scheme: string;
  readonly kind: StoredCredential["kind"];
  /** `expired`: the user has to log in again. */
  readonly state: "valid" | "renewable" | "expired";
  readonly user?: string;
  readonly flow?: string;
  readonly issuer?: string;
  readonly clientId?: string;
  readonly scopes?: readonly string[];
  readonly expiresAt?: string;
}

export function toCredentialView(
  agent: string,
  scheme: string,
  credential: StoredCredential,
  now: number,
): CredentialView {
  const { kind } = credential;
  if (credential.kind === "basic") return { agent, scheme, kind, state: "valid", user: credential.user };
  if (credential.kind !== "oauth") return { agent, scheme, kind, state: "valid" };
  const { client, expiresAt, grant, issuer, refreshToken, scopes } = credential;
  const renews = grant === "client-credentials" || refreshToken !== undefined;
  const isOver = expiresAt !== undefined && expiresAt <= now;
  return {
    agent,
    scheme,
    kind,
    state: renews ? "renewable" : isOver ? "expired" : "valid",
    flow: grant,
    issuer,
    clientId: client.id,
    scopes,
    expiresAt: expiresAt === undefined ? undefined : new Date(expiresAt).toISOString(),
  };
}

export function renderCredential(view: CredentialView): string {
  const optional = (label: string, value: string | undefined): string =>
    value === undefined || value === "" ? "" : field(label, value);
  return [
    field("Agent", view.agent),
    field("Scheme", view.scheme),
    field("Kind", view.flow === undefined ? view.kind : `${view.kind} (${view.flow})`),
    optional("User", view.user),
    optional("Issuer", view.issuer),
    optional("Client ID", view.clientId),
    optional("Scopes", view.scopes?.join(" ")),
    optional("Expires", view.expiresAt),
    field("State", view.state),
    "\n",
  ].join("");
}

/** Without an agent, lists all logins. With one, exits with 4 if there is no login or it has expired. */
export function authStatus(output: Output, flags: ClientFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const { settings } = session;
    const agent = settings.agentCard === undefined ? undefined : await requireAgentUrl(session);
    const stored = (await openVault(output).list()).filter((one) => (agent ?? one.agent) === one.agent);
    const views = stored.flatMap((one) =>
      Object.entries(one.schemes).map(([name, credential]) =>
        toCredentialView(one.agent, name, credential, Date.now()),
      ),
    );
    reportResult(session, views, () => views.map(renderCredential).join(""));
    if (settings.verbose) output.info(`Logins are kept in ${credentialFolder()}`);
    if (agent === undefined) {
      if (views.length === 0) output.info("No logins.");
      return;
    }
    if (views.some(({ state }) => state !== "expired")) return;
    const what = views.length === 0 ? "Not logged in" : "The login has expired";
    output.info(`${what}. Run: ${commandLine(settings, "auth login")}`);
    throw new CommandExit(EXIT.authentication);
  });
}

export interface AuthLogoutFlags extends ClientFlags {
  readonly scheme?: string;
  readonly all?: boolean;
}

export function authLogout(output: Output, flags: AuthLogoutFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const vault = openVault(output);
    const agent = flags.all === true ? undefined : await requireAgentUrl(session);
    const stored = (await vault.list()).filter((one) => (agent ?? one.agent) === one.agent);
    const removed: { readonly agent: string; readonly scheme: string; readonly revoked: boolean | null }[] = [];
    for (const credentials of stored) {
      const names = Object.keys(credentials.schemes).filter((name) => (flags.scheme ?? name) === name);
      for (const scheme of names) {
        const revoked = await revokeLogin(output, credentials.agent, credentials.schemes[scheme] as StoredCredential);
        removed.push({ agent: credentials.agent, scheme, revoked });
      }
      await vault.update(credentials.agent, (current) => ({
        ...current,
        schemes: Object.fromEntries(Object.entries(current.schemes).filter(([name]) => !names.includes(name))),
      }));
    }
    if (removed.length === 0 && flags.all !== true) {
      throw new CommandError("A2ACLI_ERR_CREDENTIALS_MISSING", "Login not found.", "dragoman auth status lists all.");
    }
    reportResult(session, removed, () =>
      removed.map(({ agent, scheme }) => field("Logged Out", `${agent} ${scheme}`)).join(""),
    );
  });
}

/** Derived from the address alone if possible: logging out must not require that the agent still exists. */
async function requireAgentUrl(session: Session): Promise<string> {
  const { agentCard } = session.settings;
  if (agentCard === undefined) throw usageError("The agent is missing.", "Set -a/--agent-card, or use --all.");
  const known = agentUrlOfTarget(agentCard);
  if (known !== undefined) return known;
  const { card, url } = await resolveCard(session);
  const found = agentUrl(url, card);
  if (found === undefined) throw usageError("The card contains no address.");
  return found;
}

/** Whether the authorization server revoked the tokens; null if there is nothing to revoke. */
async function revokeLogin(output: Output, agent: string, credential: StoredCredential): Promise<boolean | null> {
  for (const secret of secretsOf(credential)) output.addSecret(secret);
  if (credential.kind !== "oauth") return null;
  const { revoke } = await import("../../auth/login/oauth/tokens.ts");
  try {
    return await revoke(credential, { fetch: globalThis.fetch, allowLoopback: isLoopbackOrigin(agent) });
  } catch (error) {
    // The tokens are deleted here in any case; at the server they remain valid until they expire.
    output.warn(`The tokens could not be revoked: ${error instanceof Error ? error.message : String(error)}`);
    return false;
  }
}
