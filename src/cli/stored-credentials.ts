/** What `auth login` left behind, for the commands that come after it. */

import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { chooseKnown } from "../auth/login/choose.ts";
import type { AgentCredentials, CredentialProvider, CredentialVault } from "../auth/login/contract.ts";
import { createFileVault } from "../auth/login/file-vault.ts";
import { createStoredProvider } from "../auth/login/stored-provider.ts";
import { locateCard, parseGrpcAddress } from "../client/card/addresses.ts";
import { createCredentialGate } from "../client/transport/credential-origins.ts";
import type { AgentCard } from "../model/card.ts";
import { bindingName } from "./choose-interfaces.ts";
import type { Output } from "./output.ts";

/** XDG base directories: state is what outlives a restart and is nothing to copy elsewhere. */
export function credentialFolder(
  environment: Readonly<Record<string, string | undefined>> = process.env,
  home: string = homedir(),
): string {
  const { LOCALAPPDATA: windows, XDG_STATE_HOME: xdg } = environment;
  const fallback = process.platform === "win32" && windows ? windows : join(home, ".local", "state");
  return join(xdg !== undefined && isAbsolute(xdg) ? xdg : fallback, "dragoman", "credentials");
}

export function openVault(output: Output): CredentialVault {
  return createFileVault({
    folder: credentialFolder(),
    onExposed: (path) => output.warn(`Others could read ${path}; it is closed to them now. Consider logging in anew.`),
  });
}

/** The origin an agent's credentials are kept under: that of its card, or of its first interface if that is a file. */
export function agentOrigin(cardUrl: string | undefined, card: AgentCard): string | undefined {
  if (cardUrl !== undefined && /^https?:/i.test(cardUrl)) return new URL(cardUrl).origin;
  const [first] = card.supportedInterfaces;
  if (first === undefined) return undefined;
  if (/^https?:/i.test(first.url) && URL.canParse(first.url)) return new URL(first.url).origin;
  const address = parseGrpcAddress(first.url);
  return address && new URL(`${address.secure ? "https" : "http"}://${address.authority}`).origin;
}

/** The same from what was typed, where that is enough to tell. */
export function originOfTarget(target: string): string | undefined {
  const place = locateCard(target);
  return place.kind === "web" ? new URL(place.urls[0]).origin : undefined;
}

/** Origins of the card's interfaces that credentials are kept from. */
export function otherOrigins(card: AgentCard, cardUrl: string, allowed: readonly string[] = []): readonly string[] {
  const mayHaveCredentials = createCredentialGate({ cardUrl, credentialOrigins: allowed });
  const others = new Set<string>();
  for (const { protocolBinding, url } of card.supportedInterfaces) {
    const isGrpc = bindingName(protocolBinding) === "GRPC";
    const address = isGrpc ? parseGrpcAddress(url, { cardUrl }) : undefined;
    const target = address === undefined ? url : `${address.secure ? "https" : "http"}://${address.authority}`;
    if (URL.canParse(target) && !mayHaveCredentials({ url, address })) others.add(new URL(target).origin);
  }
  return [...others];
}

export function isLoopbackOrigin(origin: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(new URL(origin).hostname);
}

export interface StoredUse {
  readonly provider: CredentialProvider;
  readonly schemes: readonly string[];
  /** Origins besides the card's that the person who logged in allowed. */
  readonly origins: readonly string[];
}

/** Undefined when nothing is kept that the agent would take. Without a card, all that is kept for the origin counts. */
export async function useStored(
  output: Output,
  origin: string | undefined,
  card: AgentCard | undefined,
): Promise<StoredUse | undefined> {
  if (origin === undefined) return undefined;
  const vault = openVault(output);
  const known: AgentCredentials | undefined = await vault.read(origin);
  if (known === undefined) return undefined;
  const names = new Set(Object.keys(known.schemes));
  const schemes = card === undefined ? [...names] : chooseKnown(card, names);
  if (schemes.length === 0) return undefined;
  const provider = createStoredProvider({
    vault,
    known,
    schemes,
    now: Date.now,
    allowLoopback: isLoopbackOrigin(origin),
    onSecret: (secret) => output.hide(secret),
  });
  // Whoever edits the file by hand may write anything there; what is no origin allows nothing.
  const origins = known.origins.filter((text) => URL.canParse(text) && /^https?:/i.test(text));
  return { provider, schemes, origins };
}
