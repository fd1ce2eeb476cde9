/** The dialects that the client supports. */

import { a2aV1 } from "../dialects/a2a-v1/index.ts";
import { a2aV01 } from "../dialects/a2a-v01/index.ts";
import { a2aV03 } from "../dialects/a2a-v03/index.ts";
import type { Abilities, CallableDialect, CardConfidence, ExchangeCalling, RpcCalling } from "../dialects/contract.ts";
import { tasksRest } from "../dialects/tasks-rest/index.ts";
import type { AddressKind } from "../extension/contract.ts";
import { loadedEntries, perInstallation } from "../extension/installed.ts";
import type { AgentCard, AgentInterface } from "../model/card.ts";
import type { JsonObject } from "../model/json.ts";

/** In order of preference if the card allows several. */
const CORE_DIALECTS: readonly CallableDialect[] = [a2aV1, a2aV03, a2aV01, tasksRest];

/** Those of extensions come last. `loadExtensions("calling")` must have ended. */
export const callableDialects: () => readonly CallableDialect[] = perInstallation(() => [
  ...CORE_DIALECTS,
  ...loadedEntries("calling", "dialects").map(([, dialect]) => dialect),
]);

type InterfaceCalling = ExchangeCalling | RpcCalling;

/** A supported binding, and the dialect it belongs to. */
export interface SupportedBinding {
  readonly dialect: CallableDialect;
  readonly calling: InterfaceCalling;
}

export const supportedBindings: () => readonly SupportedBinding[] = perInstallation(() =>
  callableDialects().flatMap((dialect) =>
    dialect.calling.flatMap((calling) => (calling.carrier === "link" ? [] : [{ dialect, calling }])),
  ),
);

/** Patch versions are not part of the wire format: `1.0.1` is sent as `1.0`. */
export function toMajorMinor(version: string): string {
  return version.split(".").slice(0, 2).join(".");
}

export function findBinding(binding: string, version: string): SupportedBinding | undefined {
  const wanted = toMajorMinor(version);
  return supportedBindings().find(({ calling }) => calling.version === wanted && sameBinding(calling.binding, binding));
}

export function sameBinding(one: string, other: string): boolean {
  return one.toUpperCase() === other.toUpperCase();
}

/**
 * Decodes a card in the format of any dialect; `undefined` for anything else. The first dialect that is certain decodes
 * the card; interfaces from other certain dialects follow its own. If none is certain, the card may belong to any of
 * them: all their interfaces are listed, the likely ones first.
 */
export function readCard(
  value: unknown,
  cardUrl?: string,
  dialects: readonly CallableDialect[] = callableDialects(),
): AgentCard | undefined {
  const readings = dialects.flatMap(({ readCard: read }) => read?.(value, cardUrl) ?? []);
  const of = (wanted: CardConfidence) => readings.filter(({ confidence }) => confidence === wanted);
  const certain = of("certain");
  const cards = (certain.length > 0 ? certain : [...of("likely"), ...of("possible")]).map(({ card }) => card);
  // A dialect that found no interfaces probably misread the rest of the card as well.
  const [first] = [...cards.filter(({ supportedInterfaces }) => supportedInterfaces.length > 0), ...cards];
  if (first === undefined) return undefined;
  const interfaces = mergeInterfaces([first, ...cards].map(({ supportedInterfaces }) => supportedInterfaces));
  return interfaces.length === first.supportedInterfaces.length ? first : { ...first, supportedInterfaces: interfaces };
}

/** The 1.0 card of a document in the 1.0 format, which is what signatures cover; undefined if it is not a 1.0 card. */
export function toSignedForm(document: JsonObject): JsonObject | undefined {
  const card = a2aV1.readCard?.(document, undefined)?.card;
  const serving = a2aV1.serving.cards?.[0];
  return card === undefined ? undefined : serving?.document(card);
}

/** The kind of an address that is not a URL. */
export function findAddressKind(target: string): AddressKind | undefined {
  return loadedEntries("calling", "addresses").find(([start]) => target.startsWith(start))?.[1];
}

/** The card of an agent at a URL, for dialects whose agents do not publish cards. */
export function unpublishedCard(dialect: string | undefined, url: string): AgentCard | undefined {
  return callableDialects()
    .find(({ name }) => name === dialect)
    ?.cardOf?.(url);
}

/** What a dialect can express; undefined for an unknown dialect. */
export function abilitiesOf(dialect: string): Abilities | undefined {
  return callableDialects().find(({ name }) => name === dialect)?.can;
}

/** The dialect or version that a caller requires. */
export interface RequiredDialect {
  /** Name of a dialect. */
  readonly dialect?: string | undefined;
  /** `Major.Minor`. */
  readonly version?: string | undefined;
}

/** Whether the card lists an interface of that dialect or version. */
export function offersDialect({ supportedInterfaces }: AgentCard, { dialect, version }: RequiredDialect): boolean {
  return supportedInterfaces.some(({ protocolBinding, protocolVersion }) => {
    const supported = findBinding(protocolBinding, protocolVersion);
    if (supported === undefined || (dialect !== undefined && supported.dialect.name !== dialect)) return false;
    return version === undefined || supported.calling.version === toMajorMinor(version);
  });
}

/** Like `readCard`, but also decodes the card in the required dialect, whatever that dialect's confidence. */
export function readCardFor(value: unknown, cardUrl: string | undefined, wish: RequiredDialect): AgentCard | undefined {
  const card = readCard(value, cardUrl);
  if (card !== undefined && offersDialect(card, wish)) return card;
  const wished = supportedBindings().filter(({ calling, dialect }) => {
    if (wish.dialect !== undefined && dialect.name !== wish.dialect) return false;
    return wish.version === undefined || calling.version === toMajorMinor(wish.version);
  });
  const own = readCard(value, cardUrl, [...new Set(wished.map(({ dialect }) => dialect))]);
  if (card === undefined || own === undefined) return card ?? own;
  return { ...card, supportedInterfaces: mergeInterfaces([card.supportedInterfaces, own.supportedInterfaces]) };
}

/** All entries of the first list, then those of the others that are not in it yet. */
function mergeInterfaces(lists: readonly (readonly AgentInterface[])[]): readonly AgentInterface[] {
  const [first = [], ...others] = lists;
  const all = [...first];
  const known = new Set(first.map(interfaceKey));
  for (const entry of others.flat()) {
    const identity = interfaceKey(entry);
    if (!known.has(identity)) all.push(entry);
    known.add(identity);
  }
  return all;
}

/** Without the tenant: older cards have no field for it. */
function interfaceKey({ protocolBinding, protocolVersion, url }: AgentInterface): string {
  return JSON.stringify([url.replace(/\/+$/, ""), protocolBinding.toUpperCase(), toMajorMinor(protocolVersion)]);
}
