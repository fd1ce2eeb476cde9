/** Security schemes: 0.3 uses the OpenAPI form with a `type`; 1.0 wraps each kind in its own member. */

import type { SecurityRequirement } from "../../../model/card.ts";
import { isObject, type JsonObject, type JsonValue } from "../../../model/json.ts";
import type { LossRule } from "../../../model/loss.ts";
import { LOSSES } from "../losses.ts";

type Members = Readonly<Record<string, unknown>>;
type Schemes = Readonly<Record<string, JsonObject>>;
export type ReportLoss = (rule: LossRule, path: string) => void;

/** Flows that both versions have. */
const FLOWS = ["authorizationCode", "clientCredentials", "implicit", "password"] as const;

/** Omits undefined members. */
export function omitUndefined(members: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  return Object.fromEntries(
    Object.entries(members).filter((entry): entry is [string, JsonValue] => entry[1] !== undefined),
  );
}

export function toWireSchemes(schemes: Schemes | undefined, lose: ReportLoss): JsonObject | undefined {
  if (schemes === undefined) return undefined;
  const encoded = Object.entries(schemes).flatMap(([name, scheme]) => {
    const path = `card.securitySchemes.${name}`;
    const wire = toWireScheme(scheme, path, lose);
    if (wire === undefined) lose(LOSSES.unknownScheme, path);
    return wire === undefined ? [] : [[name, wire] as const];
  });
  return encoded.length === 0 ? undefined : Object.fromEntries(encoded);
}

function toWireScheme(scheme: JsonObject, path: string, lose: ReportLoss): JsonObject | undefined {
  const { apiKeySecurityScheme: apiKey, httpAuthSecurityScheme: http, oauth2SecurityScheme: oauth2 } = scheme;
  const { openIdConnectSecurityScheme: openIdConnect, mtlsSecurityScheme: mutualTls } = scheme;
  if (isObject(apiKey)) {
    const { location, name, description } = apiKey;
    return omitUndefined({ type: "apiKey", in: location, name, description });
  }
  if (isObject(http)) {
    const { scheme: authScheme, bearerFormat, description } = http;
    return omitUndefined({ type: "http", scheme: authScheme, bearerFormat, description });
  }
  if (isObject(oauth2)) {
    const { flows, oauth2MetadataUrl, description } = oauth2;
    return omitUndefined({
      type: "oauth2",
      flows: toWireFlows(isObject(flows) ? flows : {}, `${path}.oauth2SecurityScheme.flows`, lose),
      oauth2MetadataUrl,
      description,
    });
  }
  if (isObject(openIdConnect)) {
    const { openIdConnectUrl, description } = openIdConnect;
    return omitUndefined({ type: "openIdConnect", openIdConnectUrl, description });
  }
  return isObject(mutualTls) ? omitUndefined({ type: "mutualTLS", description: mutualTls.description }) : undefined;
}

function toWireFlows(flows: JsonObject, path: string, lose: ReportLoss): JsonObject {
  if (flows.deviceCode !== undefined) lose(LOSSES.deviceCode, `${path}.deviceCode`);
  const encoded: Record<string, JsonValue> = {};
  for (const name of FLOWS) {
    const flow = flows[name];
    if (!isObject(flow)) continue;
    const { authorizationUrl, tokenUrl, refreshUrl, scopes, pkceRequired } = flow;
    if (pkceRequired === true) lose(LOSSES.pkceRequired, `${path}.${name}.pkceRequired`);
    encoded[name] = omitUndefined({ authorizationUrl, tokenUrl, refreshUrl, scopes: scopes ?? {} });
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
export function fromWireSchemes(value: unknown, lose: ReportLoss): ReadSchemes {
  const given = isObject(value) ? value : {};
  const schemes = new Map<string, JsonObject>();
  const split = new Map<string, readonly string[]>();
  for (const [name, wire] of Object.entries(given)) {
    let read = isObject(wire) ? fromWireScheme(wire) : [];
    if (read.length === 0) {
      lose(LOSSES.unknownSchemeReceived, `card.securitySchemes.${name}`);
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

function unusedName(wish: string, given: Members, taken: ReadonlyMap<string, unknown>): string {
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
function fromWireScheme(wire: Members): readonly ReadScheme[] {
  const description = textOf(wire.description);
  switch (wire.type) {
    case "apiKey": {
      const { in: location, name } = wire;
      return singleScheme("apiKeySecurityScheme", { description, location: textOf(location), name: textOf(name) });
    }
    case "http": {
      const { scheme, bearerFormat } = wire;
      return singleScheme("httpAuthSecurityScheme", {
        description,
        scheme: textOf(scheme),
        bearerFormat: textOf(bearerFormat),
      });
    }
    case "oauth2":
      return fromOauth2(wire, description);
    case "openIdConnect":
      return singleScheme("openIdConnectSecurityScheme", {
        description,
        openIdConnectUrl: textOf(wire.openIdConnectUrl),
      });
    case "mutualTLS":
      return singleScheme("mtlsSecurityScheme", { description });
    default:
      return [];
  }
}

function singleScheme(kind: string, members: Readonly<Record<string, JsonValue | undefined>>): readonly ReadScheme[] {
  return [{ scheme: { [kind]: omitUndefined(members) }, suffix: "" }];
}

function fromOauth2(wire: Members, description: string | undefined): readonly ReadScheme[] {
  const flows = isObject(wire.flows) ? wire.flows : {};
  const oauth2MetadataUrl = textOf(wire.oauth2MetadataUrl);
  const around = (read: JsonObject) => ({
    oauth2SecurityScheme: omitUndefined({ description, flows: read, oauth2MetadataUrl }),
  });
  const read = FLOWS.flatMap((name) => {
    const flow = flows[name];
    return isObject(flow) ? [{ scheme: around({ [name]: fromFlow(flow) }), suffix: name }] : [];
  });
  return read.length === 0 ? [{ scheme: around({}), suffix: "" }] : read;
}

function fromFlow({ authorizationUrl, tokenUrl, refreshUrl, scopes }: Members): JsonObject {
  const named = Object.entries(isObject(scopes) ? scopes : {}).map(([name, what]) => [name, textOf(what) ?? ""]);
  return omitUndefined({
    authorizationUrl: textOf(authorizationUrl),
    tokenUrl: textOf(tokenUrl),
    refreshUrl: textOf(refreshUrl),
    scopes: Object.fromEntries(named),
  });
}

/** A requirement of a scheme that was split can be met by any of its parts, so it becomes several requirements. */
export function fromWireSecurity(value: unknown, { namesOf }: ReadSchemes): readonly SecurityRequirement[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  return value.filter(isObject).flatMap((wire) => {
    let alternatives: (readonly (readonly [string, { readonly list: readonly string[] }])[])[] = [[]];
    for (const [name, scopes] of Object.entries(wire)) {
      const list = Array.isArray(scopes) ? scopes.filter((scope) => typeof scope === "string") : [];
      const names = namesOf(name);
      alternatives = alternatives
        .flatMap((chosen) => names.map((one) => [...chosen, [one, { list }] as const]))
        .slice(0, MAX_ALTERNATIVES);
    }
    return alternatives.map((chosen) => ({ schemes: Object.fromEntries(chosen) }));
  });
}

/** Four flows in each of a dozen schemes would yield millions of alternatives. */
const MAX_ALTERNATIVES = 64;

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
