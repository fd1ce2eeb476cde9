import type { Fields } from "../json.ts";

/** A line in the notification bar. The open chat is not touched by it. */
export interface Notification {
  readonly artifactId: string;
  readonly title: string;
  /** The title was longer than the bar shows. */
  readonly cut: boolean;
  readonly text: string | undefined;
  /** Names content that the agent is asked for when the notification is tapped. */
  readonly pushDataId: string | undefined;
  /** Commands for the device, carried out without a word. */
  readonly directives: readonly Fields[];
}

const LATIN_ROOM = 84;
const WIDE_ROOM = 57;
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\u{20000}-\u{3fffd}]/u;

/** As much of a text as three lines of the bar hold: 84 Latin or 57 Chinese characters, or a mixture. */
export function fitTitle(text: string): { readonly title: string; readonly cut: boolean } {
  const characters = [...text];
  let room = 1;
  for (const [index, character] of characters.entries()) {
    room -= 1 / (WIDE.test(character) ? WIDE_ROOM : LATIN_ROOM);
    if (room < -1e-9) return { title: characters.slice(0, index).join(""), cut: true };
  }
  return { title: text, cut: false };
}
