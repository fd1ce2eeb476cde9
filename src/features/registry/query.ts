/** Requests to a registry as ARD 0.9 writes them (§7), parsed. Throws a ProtocolError that names what is wrong. */

import { createHash } from "node:crypto";
import { invalidParams } from "../../core/model/errors.ts";
import { isObject, type JsonObject } from "../../core/model/json.ts";
import { closestMatch } from "../../core/model/suggestions.ts";
import { HEALTHS, VISIBILITIES, type Visibility } from "./entry.ts";
import { type Field, type Filter, NO_FILTER, ORDERS, type Order, type OrderField } from "./search/listed.ts";

export interface Query {
  readonly text?: string;
  readonly filter: Filter;
}

const FEDERATIONS = ["auto", "referrals", "none"] as const;

export interface SearchRequest {
  readonly query: Query & { readonly text: string };
  readonly federation: (typeof FEDERATIONS)[number];
  readonly pageSize: number;
  readonly pageToken?: string;
}

export interface FacetRequest {
  readonly name: string;
  readonly field: Field;
  readonly limit: number;
  readonly minCount: number;
}

export interface ExploreRequest {
  readonly query: Query;
  readonly facets: readonly FacetRequest[];
}

export interface ListRequest {
  readonly filter: Filter;
  readonly order: Order;
  readonly pageSize: number;
  readonly pageToken?: string;
}

export interface Registration {
  readonly source: { readonly url: string } | { readonly card: JsonObject };
  readonly ttlMs?: number;
  readonly visibility?: Visibility;
  readonly probe: boolean;
}

const MAX_PAGE = 100;
const MAX_TEXT_LENGTH = 2_000;
const MAX_URL_LENGTH = 2_048;
const MAX_VALUES = 100;
const MAX_FACETS = 20;
const MAX_BUCKETS = 1_000;
const MAX_TTL_SECONDS = 7 * 24 * 60 * 60;

/** Keys of a filter: paths into the catalog entry, and shorter names for what agents are chosen by. */
const FIELDS: Readonly<Record<string, Field>> = {
  type: "type",
  tags: "tag",
  tag: "tag",
  capabilities: "skill",
  skill: "skill",
  skills: "skill",
  publisher: "publisher",
  publisherId: "publisher",
  identifier: "identifier",
  displayName: "displayName",
  version: "version",
  dialect: "dialect",
  binding: "binding",
  mode: "mode",
  health: "health",
  "metadata.dialects": "dialect",
  "metadata.bindings": "binding",
  "metadata.health": "health",
};
const TIMES = ["createdAfter", "updatedAfter"] as const;

export function parseSearchRequest(body: unknown): SearchRequest {
  const { query, federation, pageSize, pageToken } = members(body, "", SEARCH_MEMBERS);
  const { text, filter } = parseQuery(query ?? {}, "query");
  if (text === undefined || text.trim() === "") throw invalidParams("query.text", "is required and must not be empty");
  return {
    query: { text, filter },
    federation: federation === undefined ? "auto" : oneOf(federation, FEDERATIONS, "federation"),
    pageSize: pageSize === undefined ? 10 : integer(pageSize, "pageSize", 1, MAX_PAGE),
    pageToken: pageToken === undefined ? undefined : string(pageToken, "pageToken"),
  };
}

const SEARCH_MEMBERS = ["query", "federation", "pageSize", "pageToken"] as const;

export function parseExploreRequest(body: unknown): ExploreRequest {
  const { query, resultType } = members(body, "", ["query", "resultType"]);
  const { facets } = members(resultType, "resultType", ["facets"]);
  if (!Array.isArray(facets) || facets.length === 0 || facets.length > MAX_FACETS) {
    throw invalidParams("resultType.facets", `must be a list of 1 to ${MAX_FACETS}`);
  }
  return {
    query: query === undefined ? { filter: NO_FILTER } : parseQuery(query, "query"),
    facets: facets.map((facet: unknown, at) => {
      const path = `resultType.facets[${at}]`;
      const { field, limit, minCount } = members(facet, path, ["field", "limit", "minCount"]);
      const name = string(field, `${path}.field`);
      return {
        name,
        field: toField(name, `${path}.field`),
        limit: limit === undefined ? 20 : integer(limit, `${path}.limit`, 1, MAX_BUCKETS),
        minCount: minCount === undefined ? 1 : integer(minCount, `${path}.minCount`, 0, Number.MAX_SAFE_INTEGER),
      };
    }),
  };
}

export function parseRegistration(body: unknown): Registration {
  const { url, card, ttlSeconds, visibility, probe } = members(body, "", REGISTRATION_MEMBERS);
  if ((url === undefined) === (card === undefined))
    throw invalidParams("url", "exactly one of url and card is required");
  if (card !== undefined && !isObject(card)) throw invalidParams("card", "must be an object");
  if (probe !== undefined && typeof probe !== "boolean") throw invalidParams("probe", "must be true or false");
  return {
    source: isObject(card) ? { card } : { url: shortString(url, "url", MAX_URL_LENGTH) },
    probe: probe === true,
    ttlMs: ttlSeconds === undefined ? undefined : integer(ttlSeconds, "ttlSeconds", 1, MAX_TTL_SECONDS) * 1_000,
    visibility: visibility === undefined ? undefined : oneOf(visibility, VISIBILITIES, "visibility"),
  };
}

const REGISTRATION_MEMBERS = ["url", "card", "ttlSeconds", "visibility", "probe"] as const;

/** `query` is that of a URL. */
export function parseListRequest(query: string): ListRequest {
  const given = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    if (given.has(name)) throw invalidParams(name, "is given twice");
    given.set(name, value);
  }
  const conditions = new Map<string, string>();
  for (const [name, value] of given) {
    if (LIST_PARAMETERS.includes(name)) continue;
    conditions.set(name, value);
  }
  const expression = given.get("filter");
  for (const [name, value] of expression === undefined ? [] : parseExpression(expression)) {
    if (conditions.has(name)) throw invalidParams(name, "is given twice");
    conditions.set(name, value);
  }
  const pageToken = given.get("pageToken");
  const size = given.get("pageSize");
  return {
    filter: toFilter([...conditions].map(([name, value]) => [name, value.split(",").map((part) => part.trim())])),
    order: parseOrder(given.get("orderBy")),
    pageSize: size === undefined ? 20 : integer(/^\d{1,9}$/.test(size) ? Number(size) : size, "pageSize", 1, MAX_PAGE),
    pageToken: pageToken === undefined ? undefined : string(pageToken, "pageToken"),
  };
}

const LIST_PARAMETERS: readonly string[] = ["filter", "orderBy", "pageSize", "pageToken"];

function parseOrder(text: string | undefined): Order {
  if (text === undefined) return { field: "displayName", descending: false };
  const match = /^\s*([A-Za-z_]+)(?:\s+(asc|desc))?\s*$/i.exec(text);
  const field = ORDER_NAMES[match?.[1] ?? ""];
  if (field === undefined) {
    throw invalidParams("orderBy", `must be ${ORDERS.join(", ")}, with DESC after it for the other direction`);
  }
  return { field, descending: match?.[2]?.toLowerCase() === "desc" };
}

/** The text of the specification and its OpenAPI document spell them differently. */
const ORDER_NAMES: Readonly<Record<string, OrderField>> = {
  displayName: "displayName",
  name: "displayName",
  createdAt: "createdAt",
  created_at: "createdAt",
  updatedAt: "updatedAt",
  updated_at: "updatedAt",
};

const CONDITION = /\s*([A-Za-z][A-Za-z.]*)\s*(=|>)\s*(?:'([^']*)'|"([^"]*)"|([^\s'"]+))\s*(AND\b|$)/iy;

/** `name = 'value' AND name > 'value'` (ARD appendix A). */
function parseExpression(text: string): readonly (readonly [string, string])[] {
  const found = new Map<string, string>();
  for (let at = 0; ; ) {
    CONDITION.lastIndex = at;
    const match = CONDITION.exec(text);
    if (match === null)
      throw invalidParams("filter", `cannot be read at character ${at + 1}: ${text.slice(at, at + 20)}`);
    const [, name = "", operator, single, double, bare, and] = match;
    const isTime = (TIMES as readonly string[]).includes(name);
    if (operator === ">" && !isTime) throw invalidParams("filter", `${name} is compared with =`);
    if (found.has(name)) throw invalidParams("filter", `${name} is given twice`);
    found.set(name, single ?? double ?? bare ?? "");
    at = CONDITION.lastIndex;
    if (and === "") return [...found];
  }
}

function parseQuery(value: unknown, path: string): Query {
  const { text, filter } = members(value, path, ["text", "filter"]);
  return {
    text: text === undefined ? undefined : shortString(text, `${path}.text`, MAX_TEXT_LENGTH),
    filter: filter === undefined ? NO_FILTER : parseFilter(filter, `${path}.filter`),
  };
}

function parseFilter(value: unknown, path: string): Filter {
  if (!isObject(value)) throw invalidParams(path, "must be an object");
  return toFilter(
    Object.entries(value).map(([name, given]) => {
      const values = Array.isArray(given) ? given : [given];
      if (values.length > MAX_VALUES) throw invalidParams(`${path}.${name}`, `has more than ${MAX_VALUES} values`);
      return [name, values.map((one: unknown) => shortString(one, `${path}.${name}`, MAX_TEXT_LENGTH))];
    }),
  );
}

function toFilter(conditions: readonly (readonly [string, readonly string[]])[]): Filter {
  const terms: { readonly field: Field; readonly values: readonly string[] }[] = [];
  const times: Partial<Record<(typeof TIMES)[number], number>> = {};
  for (const [name, values] of conditions) {
    const time = TIMES.find((one) => one === name);
    if (time !== undefined) {
      times[time] = parseTime(values, name);
      continue;
    }
    const field = toField(name, name);
    if (values.length === 0) throw invalidParams(name, "needs a value");
    if (field === "health") for (const value of values) oneOf(value, HEALTHS, name);
    terms.push({ field, values });
  }
  return { terms, ...times };
}

function parseTime([text = ""]: readonly string[], name: string): number {
  const time = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2})?)?$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) throw invalidParams(name, "must be an ISO 8601 time such as 2026-01-31T00:00:00Z");
  return time;
}

function toField(name: string, path: string): Field {
  const field = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
  if (field !== undefined) return field;
  const meant = closestMatch(name, Object.keys(FIELDS));
  const hint = meant === undefined ? `Fields: ${Object.keys(FIELDS).join(", ")}` : `Did you mean ${meant}?`;
  throw invalidParams(path, `"${name}" cannot be filtered by. ${hint}`);
}

function members<Name extends string>(
  value: unknown,
  path: string,
  names: readonly Name[],
): Readonly<Partial<Record<Name, unknown>>> {
  if (!isObject(value)) throw invalidParams(path === "" ? "body" : path, "must be an object");
  for (const name of Object.keys(value)) {
    if ((names as readonly string[]).includes(name)) continue;
    throw invalidParams(path === "" ? name : `${path}.${name}`, `is not known. Members: ${names.join(", ")}`);
  }
  return value as Readonly<Partial<Record<Name, unknown>>>;
}

function string(value: unknown, path: string): string {
  if (typeof value !== "string") throw invalidParams(path, "must be a string");
  return value;
}

function shortString(value: unknown, path: string, most: number): string {
  const text = string(value, path);
  if (text.length > most) throw invalidParams(path, `has more than ${most} characters`);
  return text;
}

function integer(value: unknown, path: string, least: number, most: number): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most) return value;
  throw invalidParams(path, `must be a whole number from ${least} to ${most}`);
}

function oneOf<Name extends string>(value: unknown, names: readonly Name[], path: string): Name {
  const found = names.find((name) => name === value);
  if (found === undefined) throw invalidParams(path, `must be one of ${names.join(", ")}`);
  return found;
}

/** What a token is good for: it continues the same request only. */
export function digestOf(...request: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(request)).digest("base64url").slice(0, 8);
}

export function encodePageToken(digest: string, position: JsonObject): string {
  return Buffer.from(JSON.stringify({ d: digest, ...position })).toString("base64url");
}

export const MAX_TOKEN_LENGTH = 8_192;

/** The position as it was encoded. Whoever alters a token only chooses another place to continue at. */
export function decodePageToken(token: string, digest: string): JsonObject {
  if (token.length <= MAX_TOKEN_LENGTH && /^[A-Za-z0-9_-]+$/.test(token)) {
    try {
      const value: unknown = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
      if (isObject(value) && value.d === digest) return value;
    } catch {}
  }
  throw invalidPageToken();
}

export function invalidPageToken(): Error {
  return invalidParams("pageToken", "is not one of this request. Ask for the first page again");
}
