/** Stored credentials for people and programs: everything but the secrets. */
import type { StoredCredential } from "../auth/login/contract.ts";
import { field } from "./text-form.ts";

export interface CredentialView {
  readonly agent: string;
  readonly scheme: string;
  readonly kind: StoredCredential["kind"];
  /** `expired` means that a person has to log in again. */
  readonly state: "valid" | "renewable" | "expired";
  readonly user?: string;
  readonly flow?: string;
  readonly issuer?: string;
  readonly clientId?: string;
  readonly scopes?: readonly string[];
  readonly expiresAt?: string;
}

export function viewCredential(
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
    ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
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
