/** What tests of conformance reports share. */

import type { Report } from "../../src/features/conformance/index.ts";
import type { ServeOptions } from "../../src/index.ts";

/** The card of a served agent, as `runConformance` takes it. */
export async function readCard(base: string, version = "1.0") {
  const cardUrl = `${base}/.well-known/agent-card.json`;
  return { cardUrl, cardText: await (await fetch(cardUrl, { headers: { "A2A-Version": version } })).text() };
}

export const checksOf = (report: Report) =>
  report.groups.flatMap(({ requirements }) => requirements.flatMap(({ checks }) => checks));

/** The bearer token is the name of the owner. */
export const byBearer: NonNullable<ServeOptions["authenticate"]> = ({ headers }) => {
  const owner = headers.authorization?.replace("Bearer ", "");
  return owner === undefined ? undefined : { owner, authenticated: true };
};
