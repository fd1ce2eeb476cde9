import type { ExchangeLog } from "./evidence.ts";
import { type Fields, isObject } from "./json.ts";
import { fail, notShown } from "./outcome.ts";
import type { WholeAnswer } from "./peers/http-client.ts";
import type { Version } from "./requirement.ts";

/** The card as readers of one version get it. */
export interface CardScene {
  readonly version: Version;
  readonly log: ExchangeLog;
  /** The card over HTTP; undefined if it came from a file. */
  fetch(): Promise<WholeAnswer | undefined>;
  readonly text: string;
}

/** The answer with the card, where there is one. */
export async function answerOf(scene: CardScene): Promise<WholeAnswer> {
  return (await scene.fetch()) ?? notShown("the card came from a file");
}

export function documentOf(scene: CardScene): Fields {
  let value: unknown;
  try {
    value = JSON.parse(scene.text);
  } catch {
    fail("the card is no JSON");
  }
  return isObject(value) ? value : fail("the card is no JSON object");
}
