import type { CardVerification } from "../../auth/card-verifying.ts";
import { verifyCardSignatures } from "../../client/card/verify-card.ts";
import { trustOf } from "../card-trust.ts";
import { Ended, EXIT } from "../exit-codes.ts";
import { type Output, printJson } from "../output.ts";
import { verificationFields } from "../render-verification.ts";
import { jsonForm } from "../report.ts";
import { type ClientFlags, resolveCard, withSession } from "../session.ts";

/** Exit 0 only for a card that a trusted key has signed. */
export function cardVerify(output: Output, file: string | undefined, flags: ClientFlags): Promise<void> {
  const named = file === undefined ? flags : { ...flags, agentCard: file };
  return withSession({ ...named, signatures: "ignore" }, output, async (session) => {
    const { raw } = await resolveCard(session);
    const verification = await verifyCardSignatures(raw, await trustOf(session.settings));
    if (session.settings.output === "json") printJson(output, withoutDocument(verification), jsonForm(session));
    else output.data(verificationFields(verification));
    if (verification.status !== "verified") throw new Ended(EXIT.failure);
  });
}

function withoutDocument(verification: CardVerification) {
  if (verification.status !== "verified") return verification;
  const { document: _, ...rest } = verification;
  return rest;
}
