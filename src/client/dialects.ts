/** Every dialect that this client can call with. The one place of the client that names a dialect. */

import { a2aV1 } from "../dialects/a2a-v1/index.ts";
import { a2aV01 } from "../dialects/a2a-v01/index.ts";
import { a2aV03 } from "../dialects/a2a-v03/index.ts";
import type { Abilities, CallableDialect, CardConfidence, ExchangeCalling, RpcCalling } from "../dialects/contract.ts";
import { tasksRest } from "../dialects/tasks-rest/index.ts";
import { xiaoyiHttp } from "../dialects/xiaoyi-http/index.ts";
import type { AgentCard, AgentInterface } from "../model/card.ts";
import type { JsonObject } from "../model/json.ts";
import { DIALECT_NAMES, type DialectName } from "./dialect-names.ts";

const DIALECTS_BY_NAME = {
  "a2a-v1": a2aV1,
  "a2a-v03": a2aV03,
  "a2a-v01": a2aV01,
  "tasks-rest": tasksRest,
  "xiaoyi-http": xiaoyiHttp,
} satisfies Record<DialectName, CallableDialect>;

export const DIALECTS: readonly CallableDialect[] = DIALECT_NAMES.map((name) => DIALECTS_BY_NAME[name]);

type InterfaceCalling = ExchangeCalling | RpcCalling;

/** A way of calling, and the dialect it belongs to. */
export interface SupportedBinding {
  readonly dialect: CallableDialect;
  readonly calling: InterfaceCalling;
}

export const SUPPORTED_BINDINGS: readonly SupportedBinding[] = DIALECTS.flatMap((dialect) =>
  dialect.calling.flatMap((calling) => (calling.carrier === "link" ? [] : [{ dialect, calling }])),
);

/** Patch numbers say nothing on the wire: `1.0.1` is spoken as `1.0`. */
export function toMajorMinor(version: string): string {
  return version.split(".").slice(0, 2).join(".");
}

export function findBinding(binding: string, version: string): SupportedBinding | undefined {
  const spoken = toMajorMinor(version);
  return SUPPORTED_BINDINGS.find(({ calling }) => calling.version === spoken && sameBinding(calling.binding, binding));
}

export function sameBinding(one: string, other: string): boolean {
  return one.toUpperCase() === other.toUpperCase();
}

/**
 * A card in any form one of the dialects can read; `undefined` for anything else. The first dialect that is certain of
 * it has its reading; interfaces that others are as certain of come after its own. Where none is certain, the card may
 * be that of any: then all their interfaces are worth a try, the likely ones first.
 */
export function readCard(
  value: unknown,
  cardUrl?: string,
  dialects: readonly CallableDialect[] = DIALECTS,
): AgentCard | undefined {
  const readings = dialects.flatMap(({ readCard: read }) => read?.(value, cardUrl) ?? []);
  const of = (wanted: CardConfidence) => readings.filter(({ confidence }) => confidence === wanted);
  const certain = of("certain");
  const cards = (certain.length > 0 ? certain : [...of("likely"), ...of("possible")]).map(({ card }) => card);
  // Whoever found no interface in it has not understood much else of it.
  const [first] = [...cards.filter(({ supportedInterfaces }) => supportedInterfaces.length > 0), ...cards];
  if (first === undefined) return undefined;
  const interfaces = mergeInterfaces([first, ...cards].map(({ supportedInterfaces }) => supportedInterfaces));
  return interfaces.length === first.supportedInterfaces.length ? first : { ...first, supportedInterfaces: interfaces };
}

/** The 1.0 card in a document as 1.0 writes it, which is what signatures are made over; undefined if there is none. */
export function toSignedForm(document: JsonObject): JsonObject | undefined {
  const card = a2aV1.readCard?.(document, undefined)?.card;
  const serving = a2aV1.serving.cards?.[0];
  return card === undefined ? undefined : serving?.document(card);
}

/** The card of an agent at an address, in a dialect whose agents publish none. */
export function unpublishedCard(dialect: string | undefined, url: string): AgentCard | undefined {
  return DIALECTS.find(({ name }) => name === dialect)?.cardOf?.(url);
}

/** What can be said in a dialect; undefined for one that nobody knows. */
export function abilitiesOf(dialect: string): Abilities | undefined {
  return DIALECTS.find(({ name }) => name === dialect)?.can;
}

/** What a caller insists on. */
export interface RequiredDialect {
  /** Name of a dialect. */
  readonly dialect?: string | undefined;
  /** `Major.Minor`. */
  readonly version?: string | undefined;
}

/** Whether an interface of that dialect or version is among those of the card. */
export function offersDialect({ supportedInterfaces }: AgentCard, { dialect, version }: RequiredDialect): boolean {
  return supportedInterfaces.some(({ protocolBinding, protocolVersion }) => {
    const spoken = findBinding(protocolBinding, protocolVersion);
    if (spoken === undefined || (dialect !== undefined && spoken.dialect.name !== dialect)) return false;
    return version === undefined || spoken.calling.version === toMajorMinor(version);
  });
}

/** Like `readCard`; a dialect somebody insists on may read it as its own, too, however uncertain that is. */
export function readCardFor(value: unknown, cardUrl: string | undefined, wish: RequiredDialect): AgentCard | undefined {
  const card = readCard(value, cardUrl);
  if (card !== undefined && offersDialect(card, wish)) return card;
  const wished = SUPPORTED_BINDINGS.filter(({ calling, dialect }) => {
    if (wish.dialect !== undefined && dialect.name !== wish.dialect) return false;
    return wish.version === undefined || calling.version === toMajorMinor(wish.version);
  });
  const own = readCard(value, cardUrl, [...new Set(wished.map(({ dialect }) => dialect))]);
  if (card === undefined || own === undefined) return card ?? own;
  return { ...card, supportedInterfaces: mergeInterfaces([card.supportedInterfaces, own.supportedInterfaces]) };
}

/** The first list whole, of the others what is new. */
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

/** Tenants are left out: older cards have no place for them. */
function interfaceKey({ protocolBinding, protocolVersion, url }: AgentInterface): string {
  return JSON.stringify([url.replace(/\/+$/, ""), protocolBinding.toUpperCase(), toMajorMinor(protocolVersion)]);
}
