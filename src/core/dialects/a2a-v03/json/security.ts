/** Security schemes: 0.3 uses the OpenAPI form with a `type`; 1.0 wraps each kind in its own member. */

import type { SecurityRequirement } from "../../../model/card.ts";
import { isObject, type JsonObject, omitUndefined } from "../../../model/json.ts";
import { type Loss, toLoss } from "../../../model/loss.ts";
import { textIn, textsIn } from "../../shared/cards.ts";
import { LOSSES } from "../losses.ts";

type Schemes = Readonly<Record<string, JsonObject>>;

/** Flows that both versions have. */
const FLOWS = ["authorizationCode", "clientCredentials", "implicit", "password"] as const;

interface SchemeForm {
  readonly type: string;
  /** The member that has the scheme in 1.0. */
  readonly member: string;
  /** Names of members in 0.3, each with its name in 1.0. */
  readonly names: Readonly<Record<string, string>>;
}

const DESCRIPTION = { description: "description" };

const SCHEMES: readonly SchemeForm[] = [
  { type: "apiKey", member: "apiKeySecurityScheme", names: { in: "location", name: "name", ...DESCRIPTION } },
  {
    type: "http",
    member: "httpAuthSecurityScheme",
    names: { scheme: "scheme", bearerFormat: "bearerFormat", ...DESCRIPTION },
  },
  {
    type: "oauth2",
    member: "oauth2SecurityScheme",
    names: { oauth2MetadataUrl: "oauth2MetadataUrl", ...DESCRIPTION },
  },
  {
    type: "openIdConnect",
    member: "openIdConnectSecurityScheme",
    names: { openIdConnectUrl: "openIdConnectUrl", ...DESCRIPTION },
  },
  { type: "mutualTLS", member: "mtlsSecurityScheme", names: DESCRIPTION },
];

/** Encodes each scheme of a known kind; `flows` are those of OAuth 2.0 that 0.3 has. */
export function encodeSchemes(
  schemes: Schemes,
  losses: Loss[],
  encode: (form: SchemeForm, scheme: JsonObject, flows: JsonObject | undefined) => JsonObject,
): Schemes {
  const encoded: Record<string, JsonObject> = {};
  for (const [name, scheme] of Object.entries(schemes)) {
    const path = `card.securitySchemes.${name}`;
    const form = SCHEMES.find(({ member }) => isObject(scheme[member]));
    const members = form && scheme[form.member];
    if (form === undefined || !isObject(members)) {
      losses.push(toLoss(LOSSES.unknownScheme, path));
      continue;
    }
    const { flows } = members;
    const kept = isObject(flows) ? toWireFlows(flows, `${path}.${form.member}.flows`, losses) : undefined;
    encoded[name] = encode(form, members, kept);
  }
  return encoded;
}

export function toWireSchemes(schemes: Schemes | undefined, losses: Loss[]): JsonObject | undefined {
  const encoded = encodeSchemes(schemes ?? {}, losses, ({ type, names }, scheme, flows) => {
    const members = Object.entries(names).map(([wireName, name]) => [wireName, scheme[name]]);
    const own = { type, flows: type === "oauth2" ? (flows ?? {}) : undefined };
    return { ...own, ...Object.fromEntries(members) };
  });
  return Object.keys(encoded).length === 0 ? undefined : encoded;
}

function toWireFlows(flows: JsonObject, path: string, losses: Loss[]): JsonObject {
  if (flows.deviceCode !== undefined) losses.push(toLoss(LOSSES.deviceCode, `${path}.deviceCode`));
  const encoded: Record<string, JsonObject> = {};
  for (const name of FLOWS) {
    const flow = flows[name];
    if (!isObject(flow)) continue;
    const { authorizationUrl, tokenUrl, refreshUrl, scopes = {}, pkceRequired } = flow;
    if (pkceRequired === true) losses.push(toLoss(LOSSES.pkceRequired, `${path}.${name}.pkceRequired`));
    encoded[name] = { authorizationUrl, tokenUrl, refreshUrl, scopes } as JsonObject;
  }
  return encoded;
}

export function toWireSecurity(
  requirements: readonly SecurityRequirement[] | undefined,
): readonly JsonObject[] | undefined {
  return requirements?.map(({ schemes }) =>
    Object.fromEntries(Object.entries(schemes).map(([name, { list }]) => [name, list])),
  );
}

/** Model schemes, and the names of those that one 0.3 scheme was decoded to. */
export interface ReadSchemes {
  readonly schemes: Schemes | undefined;
  readonly namesOf: (name: string) => readonly string[];
}

/** A model scheme has one flow. A scheme with several is split into several, the first under the original name. */
export function fromWireSchemes(value: unknown, losses: Loss[]): ReadSchemes {
  const given = isObject(value) ? value : {};
  const schemes = new Map<string, JsonObject>();
  const split = new Map<string, readonly string[]>();
  for (const [name, wire] of Object.entries(given)) {
    let read = isObject(wire) ? fromWireScheme(wire) : [];
    if (read.length === 0) {
      losses.push(toLoss(LOSSES.unknownSchemeReceived, `card.securitySchemes.${name}`));
      read = UNKNOWN_SCHEME;
    }
    const names = read.map(({ suffix }, at) => (at === 0 ? name : unusedName(`${name}-${suffix}`, given, schemes)));
    read.forEach(({ scheme }, at) => {
      schemes.set(names[at] as string, scheme);
    });
    split.set(name, names);
  }
  return {
    schemes: schemes.size === 0 ? undefined : Object.fromEntries(schemes),
    namesOf: (name) => split.get(name) ?? [name],
  };
}

function unusedName(wish: string, given: JsonObject, taken: ReadonlyMap<string, unknown>): string {
  let name = wish;
  while (Object.hasOwn(given, name) || taken.has(name)) name += "-";
  return name;
}

interface ReadScheme {
  readonly scheme: JsonObject;
  /** Distinguishes the schemes that one wire scheme was split into. */
  readonly suffix: string;
}

/** Cannot be satisfied; the rest of the card remains usable. */
const UNKNOWN_SCHEME: readonly ReadScheme[] = [{ scheme: {}, suffix: "" }];

/** Empty for an unknown kind. */
function fromWireScheme(wire: JsonObject): readonly ReadScheme[] {
  const form = SCHEMES.find(({ type }) => type === wire.type);
  if (form === undefined) return [];
  const members = Object.entries(form.names).map(([wireName, name]) => [name, textIn(wire[wireName])]);
  const read = omitUndefined(Object.fromEntries(members) as JsonObject);
  if (form.type !== "oauth2") return [{ scheme: { [form.member]: read }, suffix: "" }];
  const flows = isObject(wire.flows) ? wire.flows : {};
  const found = FLOWS.flatMap((name) => {
    const flow = flows[name];
    return isObject(flow)
      ? [{ scheme: { [form.member]: { ...read, flows: { [name]: fromFlow(flow) } } }, suffix: name }]
      : [];
  });
  return found.length === 0 ? [{ scheme: { [form.member]: { ...read, flows: {} } }, suffix: "" }] : found;
}

function fromFlow({ authorizationUrl, tokenUrl, refreshUrl, scopes }: JsonObject): JsonObject {
  const named = Object.entries(isObject(scopes) ? scopes : {}).map(([name, what]) => [name, textIn(what) ?? ""]);
  return {
    authorizationUrl: textIn(authorizationUrl),
    tokenUrl: textIn(tokenUrl),
    refreshUrl: textIn(refreshUrl),
    scopes: Object.fromEntries(named),
  } as JsonObject;
}

/** Four flows in each of a dozen schemes would yield millions of alternatives. */
const MAX_ALTERNATIVES = 64;

/** A requirement of a scheme that was split can be met by any of its parts, so it becomes several requirements. */
export function fromWireSecurity(value: unknown, { namesOf }: ReadSchemes): readonly SecurityRequirement[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  return value.filter(isObject).flatMap((wire) => {
    let alternatives: (readonly (readonly [string, { readonly list: readonly string[] }])[])[] = [[]];
    for (const [name, scopes] of Object.entries(wire)) {
      const list = textsIn(scopes) ?? [];
      const names = namesOf(name);
      alternatives = alternatives
        .flatMap((chosen) => names.map((one) => [...chosen, [one, { list }] as const]))
        .slice(0, MAX_ALTERNATIVES);
    }
    return alternatives.map((chosen) => ({ schemes: Object.fromEntries(chosen) }));
  });
}
