/** Cards of other agents are decoded leniently: an invalid member is as good as an absent one. */

import type { AgentCard } from "../../model/card.ts";
import { isObject, type JsonObject } from "../../model/json.ts";

/** A form of the card that is made once per card object. */
export function oncePerCard<T>(make: (card: AgentCard) => T): (card: AgentCard) => T {
  const made = new WeakMap<AgentCard, { readonly form: T }>();
  return (card) => {
    let entry = made.get(card);
    if (entry === undefined) {
      entry = { form: make(card) };
      made.set(card, entry);
    }
    return entry.form;
  };
}

/** Undefined if it is empty. */
export function textIn(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Undefined if there are none. */
export function textsIn(value: unknown): readonly string[] | undefined {
  const texts = Array.isArray(value) ? value.filter((item) => textIn(item) !== undefined) : [];
  return texts.length === 0 ? undefined : texts;
}

export function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
