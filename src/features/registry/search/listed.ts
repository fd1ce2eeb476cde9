import { type AgentCard, UNNAMED_AGENT } from "../../../core/model/card.ts";
import { dialectsOf, type Health, identifierOf, publisherOf, type RegistryEntry, type Visibility } from "../entry.ts";
import type { WeightedText } from "./text-index.ts";

/** What is kept in memory of an agent; its card stays in the store. */
export interface Listed {
  readonly id: string;
  readonly owner: string;
  readonly visibility: Visibility;
  readonly health: Health;
  readonly identifier: string;
  readonly displayName: string;
  /** What lists by name are sorted by: without regard to case. */
  readonly sortName: string;
  readonly version: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** By name of the filter; lower case except for what a facet shows. */
  readonly facets: Readonly<Record<IndexedField, readonly string[]>>;
}

export const INDEXED_FIELDS = ["skill", "tag", "publisher", "dialect", "binding", "mode"] as const;
export type IndexedField = (typeof INDEXED_FIELDS)[number];
const PLAIN_FIELDS = ["type", "identifier", "displayName", "version", "health"] as const;
export type PlainField = (typeof PLAIN_FIELDS)[number];
export type Field = IndexedField | PlainField;

export const CARD_MEDIA_TYPE = "application/a2a-agent-card+json";

/** All conditions hold; of the values of one, any. */
export interface Filter {
  readonly terms: readonly { readonly field: Field; readonly values: readonly string[] }[];
  readonly createdAfter?: number | undefined;
  readonly updatedAfter?: number | undefined;
}

export const NO_FILTER: Filter = { terms: [] };

export const ORDERS = ["displayName", "createdAt", "updatedAt"] as const;
export type OrderField = (typeof ORDERS)[number];
export interface Order {
  readonly field: OrderField;
  readonly descending: boolean;
}

/** Many agents have the same tags and media types: one string in memory for all of them. */
export class SharedStrings {
  readonly #strings = new Map<string, string>();

  share(value: string): string {
    const known = this.#strings.get(value);
    if (known !== undefined) return known;
    if (this.#strings.size < MAX_SHARED) this.#strings.set(value, value);
    return value;
  }

  /** Without repetitions. */
  shareAll(values: readonly string[]): readonly string[] {
    return Array.from(new Set(values.slice(0, MAX_VALUES)), (value) => this.share(value));
  }
}

const MAX_SHARED = 50_000;
/** Values of one field of one agent that can be searched for, and characters of its texts. */
const MAX_VALUES = 500;
const MAX_TEXT_LENGTH = 16_384;

/** After every name. */
const LAST_NAME = "\uffff";

/** Stored before a name was required. */
export function isNameless(name: string): boolean {
  return name.trim() === "" || name === UNNAMED_AGENT;
}

export function toListed(entry: RegistryEntry, strings: SharedStrings): Listed {
  const { card } = entry;
  const identifier = identifierOf(entry);
  const modes = [
    ...card.defaultInputModes,
    ...card.defaultOutputModes,
    ...card.skills.flatMap(({ inputModes = [], outputModes = [] }) => [...inputModes, ...outputModes]),
  ];
  return {
    id: entry.id,
    owner: strings.share(entry.owner),
    visibility: entry.visibility,
    health: entry.health,
    identifier,
    displayName: card.name,
    sortName: isNameless(card.name) ? LAST_NAME : card.name.toLowerCase(),
    version: strings.share(card.version),
    createdAt: entry.createdAt,
    updatedAt: entry.updatedAt,
    facets: {
      skill: strings.shareAll(card.skills.map(({ id }) => id)),
      tag: strings.shareAll(card.skills.flatMap(({ tags }) => tags)),
      publisher: strings.shareAll([publisherOf(identifier)]),
      dialect: strings.shareAll(dialectsOf(card)),
      binding: strings.shareAll(card.supportedInterfaces.map(({ protocolBinding }) => protocolBinding)),
      mode: strings.shareAll(modes),
    },
  };
}

/** What can be searched for, the name above all. */
export function textsOf({ name, description, provider, skills }: AgentCard): readonly WeightedText[] {
  const texts = [
    { text: name, weight: 3 },
    { text: description, weight: 1 },
    { text: provider?.organization ?? "", weight: 1 },
    ...skills.flatMap((skill) => [
      { text: skill.id, weight: 2 },
      { text: skill.name, weight: 2 },
      { text: skill.tags.join(" "), weight: 2 },
      { text: skill.description, weight: 1 },
      { text: skill.examples?.join("\n") ?? "", weight: 1 },
    ]),
  ];
  let left = MAX_TEXT_LENGTH;
  return texts.flatMap(({ text, weight }) => {
    const part = text.slice(0, left);
    left -= part.length;
    return part === "" ? [] : [{ text: part, weight }];
  });
}
