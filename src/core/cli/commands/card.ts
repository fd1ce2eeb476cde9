import { readFile, writeFile } from "node:fs/promises";
import { z } from "zod";
import { loadSigningKey, SIGNING_ALGORITHMS } from "../../auth/signatures/keys.ts";
import { signCard } from "../../auth/signatures/sign-card.ts";
import type { CardVerification } from "../../auth/signatures/verify-card.ts";
import { verifyCardSignatures } from "../../client/card/verify-card.ts";
import { toSignedForm } from "../../client/dialects.ts";
import { ConnectionError } from "../../client/errors.ts";
import type { ChosenInterface } from "../../client/options.ts";
import type { AgentCard } from "../../model/card.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import { canParseUrl } from "../../model/url.ts";
import { CommandError, CommandExit, EXIT, usageError } from "../errors.ts";
import { ifGiven, readChoice } from "../flag-values.ts";
import { type Output, printJson } from "../output.ts";
import { describeInterface, describeVerification, renderCard } from "../render/card.ts";
import { field } from "../render/text.ts";
import { chooseInterfaces, flagsForOlder } from "../session/choose-interfaces.ts";
import { readTrustOptions } from "../session/connect-options.ts";
import { credentialHint, keepDeclaredCredentials } from "../session/credentials.ts";
import { jsonLayout, reportResult } from "../session/report.ts";
import { type ClientFlags, connectTo, resolveCard, type Session, withSession } from "../session/session.ts";

export interface CardGetFlags extends ClientFlags {
  readonly validate?: boolean;
  readonly extended?: boolean;
}

export function cardGet(output: Output, flags: CardGetFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const found = await resolveCard(session);
    const document: unknown = JSON.parse(found.raw);
    if (flags.validate === true) requireValidCard(session, document, found.url);
    const verification =
      found.verification ?? (await verifyCardSignatures(found.raw, await readTrustOptions(session.settings)));
    const extended = flags.extended === true ? await fetchExtendedCard(session, found.card) : undefined;
    if (session.settings.output === "json") {
      // The document is the card as served, which has no field for the outcome.
      output.info(`Signature: ${describeVerification(verification)}`);
      printJson(output, extended ?? document, jsonLayout(session));
      return;
    }
    const card = extended ?? found.card;
    const selected = await describeSelectedInterface(session, found.card);
    output.write(renderCard(card, selected, describeVerification(verification), session.settings.verbose));
    if (flags.validate === true) output.write("Valid: yes\n");
  });
}

function requireValidCard(session: Session, document: unknown, where: string): void {
  const problems = findCardProblems(document);
  if (problems.length === 0) return;
  for (const problem of problems) session.output.info(problem);
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  throw new CommandError("A2ACLI_ERR_CARD_INVALID", `The card at ${where} has ${count}: ${problems.join(" ")}`);
}

async function fetchExtendedCard(session: Session, card: AgentCard): Promise<AgentCard> {
  if (card.capabilities.extendedAgentCard !== true) {
    throw new ProtocolError("UNSUPPORTED_OPERATION", "The agent's card declares no extended card.");
  }
  const { hasAny, settings, withheld } = keepDeclaredCredentials(card, session.settings);
  const agent = await connectTo(session, card, settings);
  if (withheld.length > 0 && !(hasAny || session.usesLogin || session.tls?.cert !== undefined)) {
    throw new CommandError(
      "A2ACLI_ERR_CREDENTIALS_MISSING",
      `The extended card was not requested: no security scheme of the card accepts ${withheld.join(" or ")}.`,
      credentialHint(card),
    );
  }
  return agent.extendedCard();
}

/** The interface that other commands would use. Having none is shown, and is not an error of this command. */
async function describeSelectedInterface(session: Session, card: AgentCard): Promise<string> {
  const { addressed, cardUrl, settings } = session;
  if (addressed !== undefined) return describeChosen(addressed.interface);
  const { chooseInterfaces: chooseSupported } = await import("../../client/card/choose-interface.ts");
  try {
    const allowed = { ...card, supportedInterfaces: chooseInterfaces(card, settings) };
    const [{ interface: chosen }] = chooseSupported(allowed, { dialect: settings.dialect, cardUrl }).candidates;
    return describeChosen(chosen);
  } catch (error) {
    if (ConnectionError.is(error)) return "none that is supported";
    if (ProtocolError.is(error)) return `none without ${flagsForOlder(card).join(" or ") || "another --a2a-version"}`;
    throw error;
  }
}

function describeChosen({ binding, tenant, url, version }: ChosenInterface): string {
  return describeInterface({ protocolBinding: binding, protocolVersion: version, url, tenant });
}

/** Exits with 0 only if a trusted key signed the card. */
export function cardVerify(output: Output, file: string | undefined, flags: ClientFlags): Promise<void> {
  const named = file === undefined ? flags : { ...flags, agentCard: file };
  return withSession({ ...named, signatures: "ignore" }, output, async (session) => {
    const { raw } = await resolveCard(session);
    const verification = await verifyCardSignatures(raw, await readTrustOptions(session.settings));
    reportResult(session, withoutDocument(verification), () => field("Signature", describeVerification(verification)));
    if (verification.status !== "verified") throw new CommandExit(EXIT.failure);
  });
}

function withoutDocument(verification: CardVerification) {
  if (verification.status !== "verified") return verification;
  const { document: _, ...rest } = verification;
  return rest;
}

export interface CardSignFlags {
  readonly key: string;
  readonly kid: string;
  readonly alg?: string;
  readonly jku?: string;
  readonly out?: string;
}

/** Prints the signed card; earlier signatures by other keys are preserved. */
export async function cardSign(output: Output, file: string, flags: CardSignFlags): Promise<void> {
  const alg = ifGiven(flags.alg, (text) => readChoice("--alg", text, SIGNING_ALGORITHMS));
  if (flags.jku !== undefined && !(canParseUrl(flags.jku) && flags.jku.startsWith("https://"))) {
    throw usageError("--jku must be an https URL: verifiers accept no other.");
  }
  const document = await readCard(file);
  const key = await loadSigningKey({ keyFile: flags.key, kid: flags.kid, alg, jku: flags.jku });
  const form = toSignedForm(document);
  if (form === undefined) throw new CommandError("A2ACLI_ERR_CARD_INVALID", `${file} holds no card of A2A 1.0.`);
  const unsigned = Object.keys(document).filter(
    (name) => name !== "signatures" && !(name in form) && !isEmpty(document[name]),
  );
  if (unsigned.length > 0)
    output.warn(`Not part of a 1.0 card, so not covered by the signature: ${unsigned.join(", ")}.`);
  const signatures = [...otherSignatures(document, flags.kid), ...signCard(form, key)];
  const signed = { ...document, signatures };
  if (flags.out === undefined) printJson(output, signed, "document");
  else await writeFile(flags.out, `${JSON.stringify(signed, null, 2)}\n`);
  output.info(`Signed with ${key.alg} by the key ${key.kid}.`);
}

async function readCard(file: string): Promise<JsonObject> {
  let document: unknown;
  try {
    document = JSON.parse(await readFile(file, "utf8"));
  } catch (cause) {
    const code = cause instanceof SyntaxError ? "A2ACLI_ERR_CARD_INVALID" : "A2ACLI_ERR_CARD_NOT_FOUND";
    const what = cause instanceof SyntaxError ? "is not JSON" : "could not be read";
    throw new CommandError(code, `The card file ${file} ${what}.`, null, { cause });
  }
  const problems = findCardProblems(document);
  if (problems.length > 0) {
    throw new CommandError("A2ACLI_ERR_CARD_INVALID", `${file} is not a valid card of A2A 1.0: ${problems.join(" ")}`);
  }
  return document as JsonObject;
}

/** Signing again with the same key replaces its earlier signature. */
function otherSignatures({ signatures }: JsonObject, kid: string): readonly JsonValue[] {
  return Array.isArray(signatures) ? signatures.filter((signature: JsonValue) => kidOf(signature) !== kid) : [];
}

function kidOf(signature: JsonValue): unknown {
  try {
    const header = (signature as JsonObject).protected;
    return (JSON.parse(Buffer.from(String(header), "base64url").toString("utf8")) as JsonObject).kid;
  } catch {
    return undefined;
  }
}

/** Empty values that 1.0 omits are not reported. */
function isEmpty(value: JsonValue | undefined): boolean {
  return value === "" || JSON.stringify(value) === "[]" || JSON.stringify(value) === "{}";
}

const nonEmpty = z.string().min(1);
const mediaTypes = z.array(nonEmpty).min(1);

/** What A2A 1.0 requires of a card (section 4.4). Unknown members are allowed: extensions may add them. */
const cardSchema = z.looseObject({
  name: nonEmpty,
  description: nonEmpty,
  version: nonEmpty,
  supportedInterfaces: z
    .array(
      z.looseObject({
        url: nonEmpty,
        protocolBinding: nonEmpty,
        protocolVersion: z.string().regex(/^\d+\.\d+/, "must look like 1.0"),
        tenant: z.string().optional(),
      }),
    )
    .min(1),
  provider: z.looseObject({ url: nonEmpty, organization: nonEmpty }).optional(),
  capabilities: z.looseObject({
    streaming: z.boolean().optional(),
    pushNotifications: z.boolean().optional(),
    extendedAgentCard: z.boolean().optional(),
    extensions: z.array(z.looseObject({ uri: z.string().optional(), required: z.boolean().optional() })).optional(),
  }),
  securitySchemes: z.record(z.string(), z.looseObject({})).optional(),
  securityRequirements: z.array(z.looseObject({ schemes: z.record(z.string(), z.unknown()).optional() })).optional(),
  defaultInputModes: mediaTypes,
  defaultOutputModes: mediaTypes,
  skills: z.array(z.looseObject({ id: nonEmpty, name: nonEmpty, description: nonEmpty, tags: z.array(z.string()) })),
  signatures: z.array(z.looseObject({ protected: nonEmpty, signature: nonEmpty })).optional(),
  documentationUrl: z.string().optional(),
  iconUrl: z.string().optional(),
});

/** Why a document is not a valid 1.0 card, one sentence per problem; empty if it is valid. */
function findCardProblems(document: unknown): readonly string[] {
  const result = cardSchema.safeParse(document);
  if (result.success) return [];
  return result.error.issues.map((issue) => `${issue.path.join(".") || "The document"}: ${issue.message}.`);
}
