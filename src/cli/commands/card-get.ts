import { verifyCardSignatures } from "../../client/card/verify-card.ts";
import { ConnectionError } from "../../client/errors.ts";
import type { AgentCard, AgentInterface } from "../../model/card.ts";
import { ProtocolError } from "../../model/errors.ts";
import { cardProblems } from "../card-problems.ts";
import { trustOf } from "../card-trust.ts";
import { CommandError } from "../errors.ts";
import { type Output, printJson } from "../output.ts";
import { renderCard } from "../render-card.ts";
import { describeVerification } from "../render-verification.ts";
import { jsonForm } from "../report.ts";
import { type ClientFlags, connectTo, resolveCard, type Session, withSession } from "../session.ts";
import { safeText } from "../text-form.ts";

export interface CardGetFlags extends ClientFlags {
  readonly validate?: boolean;
  readonly extended?: boolean;
}

export function cardGet(output: Output, flags: CardGetFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const found = await resolveCard(session);
    const document: unknown = JSON.parse(found.raw);
    if (flags.validate === true) validate(session, document, found.url);
    const verification = found.verification ?? (await verifyCardSignatures(found.raw, await trustOf(session.settings)));
    const extended = flags.extended === true ? await extendedCard(session, found.card) : undefined;
    if (session.settings.output === "json") {
      // The document is the card as it was served, which has no place for the outcome.
      output.talk(`Signature: ${safeText(describeVerification(verification))}`);
      printJson(output, extended ?? document, jsonForm(session));
      return;
    }
    const card = extended ?? found.card;
    const selected = await selectedInterface(session, found.card);
    output.data(renderCard(card, selected, describeVerification(verification), session.settings.verbose));
    if (flags.validate === true) output.data("Valid: yes\n");
  });
}

function validate(session: Session, document: unknown, where: string): void {
  const problems = cardProblems(document);
  if (problems.length === 0) return;
  for (const problem of problems) session.output.talk(problem);
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  throw new CommandError("A2ACLI_ERR_CARD_INVALID", `The card at ${where} has ${count}: ${problems.join(" ")}`);
}

async function extendedCard(session: Session, card: AgentCard): Promise<AgentCard> {
  if (card.capabilities.extendedAgentCard !== true) {
    throw new ProtocolError("UNSUPPORTED_OPERATION", "The agent's card says that there is no extended card.");
  }
  return (await connectTo(session, card)).extendedCard();
}

/** The interface the other commands would use; none is worth showing, not a failure of reading the card. */
async function selectedInterface(session: Session, card: AgentCard): Promise<AgentInterface | undefined> {
  try {
    const { binding, tenant, url, version } = (await connectTo(session, card)).interface;
    return { protocolBinding: binding, protocolVersion: version, url, ...(tenant === undefined ? {} : { tenant }) };
  } catch (error) {
    if (ConnectionError.is(error) || ProtocolError.is(error)) return undefined;
    throw error;
  }
}
