/** What was shown of artifacts beside their text. It cannot be taken back: of what replaces it, only what is new shows. */

import { deriveId } from "../shared/responses.ts";
import type { PartWire } from "./wire.ts";

export interface Beside {
  readonly reasoning: string;
  /** Cards and the like, and files the platform has: shown by themselves. */
  readonly things: readonly PartWire[];
  readonly files: readonly PartWire[];
}

interface Shown {
  reasoning: string;
  readonly things: Set<string>;
}

export class ShownBeside {
  readonly #artifacts = new Map<string, Shown>();

  /** What of it is to be shown. */
  put(key: string, said: Beside, append: boolean): Beside {
    const { files, reasoning, things } = said;
    if (reasoning === "" && things.length === 0 && files.length === 0) return said;
    const known = this.#artifacts.get(key);
    const shown: Shown = known ?? { reasoning: "", things: new Set() };
    this.#artifacts.set(key, shown);
    const fresh = known === undefined || append ? said : withoutShown(said, shown);
    shown.reasoning = append ? shown.reasoning + reasoning : reasoning;
    for (const part of [...things, ...files]) shown.things.add(keyOf(part));
    return fresh;
  }
}

function withoutShown({ files, reasoning, things }: Beside, shown: Shown): Beside {
  const isNew = (part: PartWire): boolean => !shown.things.has(keyOf(part));
  const goesOn = reasoning.startsWith(shown.reasoning);
  return {
    reasoning: goesOn ? reasoning.slice(shown.reasoning.length) : reasoning,
    things: things.filter(isNew),
    files: files.filter(isNew),
  };
}

function keyOf(part: PartWire): string {
  return deriveId("beside", part);
}
