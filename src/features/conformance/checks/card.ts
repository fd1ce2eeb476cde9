import { type Fields, fieldsOf, isObject, listOf } from "../../../core/model/json.ts";
import { type CardContext, type Check, check, ensure, fail, notShown } from "../check.ts";
import { parseJson, show } from "../json.ts";

type Kind = "text" | "list" | "object" | "texts";

type Members = Readonly<Record<string, Kind>>;

const REQUIRED: Members = {
  name: "text",
  description: "text",
  version: "text",
  capabilities: "object",
  defaultInputModes: "texts",
  defaultOutputModes: "texts",
  skills: "list",
};
const REQUIRED_V1: Members = { ...REQUIRED, supportedInterfaces: "list" };
const REQUIRED_V03: Members = { ...REQUIRED, protocolVersion: "text", url: "text" };
const REQUIRED_SKILL: Members = { id: "text", name: "text", description: "text", tags: "texts" };

function findMissing(value: Fields, required: Members, path: string): string[] {
  return Object.entries(required)
    .filter(([name, kind]) => !hasKind(value[name], kind))
    .map(([name]) => `${path}${name} is ${value[name] === undefined ? "missing" : show(value[name])}`);
}

function hasKind(value: unknown, kind: Kind): boolean {
  if (kind === "text") return typeof value === "string";
  if (kind === "object") return isObject(value);
  if (!Array.isArray(value)) return false;
  return kind === "list" || value.every((item) => typeof item === "string");
}

function failIfAny(problems: readonly string[]): void {
  if (problems.length > 0) fail(problems.slice(0, 5).join("; "));
}

const SCHEMES_V1 = [
  "apiKeySecurityScheme",
  "httpAuthSecurityScheme",
  "oauth2SecurityScheme",
  "openIdConnectSecurityScheme",
  "mtlsSecurityScheme",
];

function findSnakeCase(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item, at) => findSnakeCase(item, `${path}[${at}]`));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    // Names of schemes and scopes, and the params of extensions, are not defined by the protocol.
    if (["params", "scopes", "schemes", "securitySchemes", "header"].includes(name)) return [];
    const found = /^[a-z0-9]+(_[a-z0-9]+)+$/.test(name) ? [`${path}${name} is not in camelCase`] : [];
    return [...found, ...findSnakeCase(member, `${path}${name}.`)];
  });
}

async function fetchHeader(context: CardContext, name: string): Promise<string | undefined> {
  return (await context.fetch()).headers.get(name) ?? undefined;
}

/** All checks look at the same card. */
const parsed = new WeakMap<CardContext, Fields>();

function parseCard(context: CardContext): Fields {
  const known = parsed.get(context);
  if (known !== undefined) return known;
  const value = parseJson(context.text);
  ensure(value !== undefined, "the card is not JSON");
  if (!isObject(value)) fail("the card is not a JSON object");
  parsed.set(context, value);
  return value;
}

export const CARD_CHECKS: readonly Check<CardContext>[] = [
  check("card-fetched", "CARD-DISC-001", async (context) => {
    const { contentType, status } = await context.fetch();
    ensure(status === 200, `the card was answered with ${status}`);
    ensure(/^application\/(.+\+)?json$/.test(contentType), `the card is ${show(contentType)}, not JSON`);
    parseCard(context);
  }),
  check("card-members", "CARD-STRUCT-001", async (context) => {
    const card = parseCard(context);
    const skills = listOf(card.skills).flatMap((skill, at) =>
      findMissing(fieldsOf(skill), REQUIRED_SKILL, `skills[${at}].`),
    );
    failIfAny([...findMissing(card, context.version === "1.0" ? REQUIRED_V1 : REQUIRED_V03, ""), ...skills]);
  }),
  check("card-has-interface", "CARD-PROTO-001", async (context) => {
    const { supportedInterfaces, url } = parseCard(context);
    const some = context.version === "1.0" ? listOf(supportedInterfaces).length > 0 : typeof url === "string";
    ensure(some, "the card declares no interface");
  }),
  check("card-interfaces-complete", "CARD-PROTO-002", async (context) => {
    const card = parseCard(context);
    if (context.version === "1.0") {
      const required = { url: "text", protocolBinding: "text", protocolVersion: "text" } as const;
      failIfAny(
        listOf(card.supportedInterfaces).flatMap((entry, at) =>
          findMissing(fieldsOf(entry), required, `supportedInterfaces[${at}].`),
        ),
      );
      return;
    }
    failIfAny([
      ...findMissing(card, { url: "text", preferredTransport: "text" }, ""),
      ...listOf(card.additionalInterfaces).flatMap((entry, at) =>
        findMissing(fieldsOf(entry), { url: "text", transport: "text" }, `additionalInterfaces[${at}].`),
      ),
    ]);
  }),
  check("card-proto-json", "CARD-JSON-001", async (context) => {
    const card = parseCard(context);
    const schemes = Object.entries(fieldsOf(card.securitySchemes)).flatMap(([name, scheme]) => {
      const members = Object.keys(fieldsOf(scheme));
      const known = members.length === 1 && SCHEMES_V1.includes(members[0] ?? "");
      return known ? [] : [`securitySchemes.${name} has the members ${members.join(", ") || "none"}`];
    });
    failIfAny([...findSnakeCase(card, ""), ...schemes]);
  }),
  check("card-cache-control", "CARD-CACHE-001", async (context) => {
    const value = await fetchHeader(context, "cache-control");
    ensure(/max-age=\d+/.test(value ?? ""), `Cache-Control is ${show(value)}`);
  }),
  check("card-etag", "CARD-CACHE-002", async (context) => {
    ensure((await fetchHeader(context, "etag")) !== undefined, "there is no ETag");
  }),
  check("card-last-modified", "CARD-CACHE-003", async (context) => {
    ensure((await fetchHeader(context, "last-modified")) !== undefined, "there is no Last-Modified");
  }),
  check("card-signature-header", "CARD-SIGN-003", async (context) => {
    const signatures = listOf(parseCard(context).signatures).map(fieldsOf);
    if (signatures.length === 0) notShown("the card is not signed");
    for (const { protected: encoded } of signatures) {
      const header = parseJson(Buffer.from(String(encoded), "base64url").toString("utf8"));
      ensure(header !== undefined, `a protected header cannot be read: ${show(encoded)}`);
      failIfAny(findMissing(fieldsOf(header), { alg: "text", kid: "text", typ: "text" }, "the protected header's "));
    }
  }),
];
