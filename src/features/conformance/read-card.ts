import { type Fields, fieldsOf, isObject, listOf } from "../../core/model/json.ts";
import { canParseUrl } from "../../core/model/url.ts";
import { textOf } from "./json.ts";
import type { Target } from "./peers/peer.ts";
import { BINDINGS, type Binding, type Version } from "./requirements.ts";

export type DeclaredCapabilities = ReturnType<typeof readCapabilities>;

/** The capabilities that a card of this version declares. */
export function readCapabilities(card: Fields, version: Version) {
  const capabilities = fieldsOf(card.capabilities);
  const extensions = listOf(capabilities.extensions).map(fieldsOf);
  const urisWhere = (required: boolean) =>
    extensions.filter((one) => (one.required === true) === required).flatMap(({ uri }) => textOf(uri) ?? []);
  const requirements = version === "1.0" ? card.securityRequirements : (card.security ?? card.securityRequirements);
  return {
    streaming: capabilities.streaming === true,
    push: capabilities.pushNotifications === true,
    extendedCard:
      version === "1.0" ? capabilities.extendedAgentCard === true : card.supportsAuthenticatedExtendedCard === true,
    inputModes: listOf(card.defaultInputModes).flatMap((mode) => textOf(mode) ?? []),
    requiredExtensions: urisWhere(true),
    optionalExtensions: urisWhere(false),
    /** Callers must authenticate. */
    authenticated: requiresCredentials(listOf(requirements).map(fieldsOf), version),
  };
}

/** One alternative without schemes makes authentication optional. */
function requiresCredentials(requirements: readonly Fields[], version: Version): boolean {
  if (requirements.length === 0) return false;
  const schemesOf = (one: Fields) => (version === "1.0" ? fieldsOf(one.schemes) : one);
  return requirements.every((one) => Object.keys(schemesOf(one)).length > 0);
}

interface FoundTargets {
  readonly targets: readonly Target[];
  /** Interfaces that this suite does not support, formatted for display. */
  readonly unsupported: readonly string[];
}

/** The declared interfaces without duplicates, in the order of the first card that names each. */
export function findTargets(documents: readonly unknown[], cardUrl: string): FoundTargets {
  const found = new Map<string, Target>();
  const unknown = new Set<string>();
  for (const document of documents.map(fieldsOf)) {
    for (const entry of [...entriesV1(document), ...entriesV03(document)]) {
      const target = toTarget(entry, cardUrl);
      if (target === undefined) unknown.add(`${entry.binding} ${entry.version} at ${entry.url}`);
      else found.set(keyOf(target), found.get(keyOf(target)) ?? target);
    }
  }
  return { targets: [...found.values()], unsupported: [...unknown] };
}

/** An interface as the card has it. */
const toEntry = (url: unknown, binding: unknown, version: unknown, tenant?: unknown) => ({
  url: textOf(url) ?? "",
  binding: textOf(binding) ?? "",
  version: textOf(version) ?? "",
  tenant: textOf(tenant) || undefined,
});

type Entry = ReturnType<typeof toEntry>;

function entriesV1(card: Fields): Entry[] {
  return listOf(card.supportedInterfaces)
    .filter(isObject)
    .map(({ protocolBinding, protocolVersion, tenant, url }) => toEntry(url, protocolBinding, protocolVersion, tenant));
}

/** Interfaces of a 0.3 card: one URL with the preferred transport, and additional interfaces. */
function entriesV03(card: Fields): Entry[] {
  const { preferredTransport, protocolVersion, url } = card;
  if (textOf(url) === undefined || !isV03(textOf(protocolVersion) ?? "")) return [];
  const others = listOf(card.additionalInterfaces)
    .filter(isObject)
    .map((entry) => toEntry(entry.url, entry.transport, protocolVersion));
  return [toEntry(url, textOf(preferredTransport) ?? "JSONRPC", protocolVersion), ...others];
}

function isV03(version: string): boolean {
  return /^0\.[23](\.|$)/.test(version);
}

function parseVersion(text: string): Version | undefined {
  if (/^1\.0(\.|$)/.test(text)) return "1.0";
  return isV03(text) ? "0.3" : undefined;
}

function toTarget({ binding, tenant, url, version }: Entry, cardUrl: string): Target | undefined {
  const known = BINDINGS.find((name): name is Binding => name === binding.toUpperCase());
  const supported = parseVersion(version);
  if (known === undefined || supported === undefined) return undefined;
  if (known === "GRPC") return url === "" ? undefined : { binding: known, version: supported, url, tenant };
  if (!canParseUrl(url, cardUrl)) return undefined;
  return { binding: known, version: supported, url: new URL(url, cardUrl).href, tenant };
}

function keyOf({ binding, tenant, url, version }: Target): string {
  return [binding, version, url.replace(/\/+$/, ""), tenant ?? ""].join(" ");
}
