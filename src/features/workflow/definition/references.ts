/** Whether the references of a step lead anywhere; checked when the file is read, before anything runs. */

import { closestMatch } from "../../../core/model/suggestions.ts";
import { printReference } from "./expression.ts";
import { type Condition, type Reference, STEP_STATES } from "./plan.ts";

interface Surroundings {
  /** Name of the step that the reference stands in. */
  readonly step: string;
  readonly steps: readonly string[];
  /** Whether the step has a `foreach`, and the reference stands in what is done for each item. */
  readonly hasItem: boolean;
}

const INPUT_MEMBERS = ["text", "data", "parts"];
const STEP_MEMBERS = ["text", "data", "artifacts", "state"];
/** Values without members of their own. */
const PLAIN = new Set(["text", "state", "index"]);

/** What is wrong with a reference; undefined if nothing is. */
export function checkReference(reference: Reference, around: Surroundings): string | undefined {
  const [root = "", ...members] = reference.path;
  const shown = printReference(reference);
  switch (root) {
    case "input":
      return checkMember(shown, "input", members, INPUT_MEMBERS);
    case "steps": {
      const [name, ...below] = members;
      if (name === undefined) return `${shown}: name a step, as in \${steps.NAME.text}`;
      if (name === around.step) return `${shown}: a step cannot refer to itself`;
      if (!around.steps.includes(name)) return `${shown}: ${unknownStep(name, around.steps)}`;
      return checkMember(shown, `steps.${name}`, below, STEP_MEMBERS);
    }
    case "item":
    case "index":
      if (!around.hasItem) return `${shown} has a meaning only in what a foreach does for each item`;
      return root === "index" && members.length > 0 ? `${shown}: index has no members` : undefined;
    default:
      return `${shown}: ${unknownRoot(root)}`;
  }
}

function checkMember(
  shown: string,
  owner: string,
  [member, ...below]: readonly string[],
  known: readonly string[],
): string | undefined {
  if (member === undefined)
    return `${shown}: write which part of it: ${known.map((one) => `${owner}.${one}`).join(", ")}`;
  if (!known.includes(member)) return `${shown}: ${owner} has no ${member}; ${suggestion(member, known)}`;
  return PLAIN.has(member) && below.length > 0 ? `${shown}: ${owner}.${member} has no members` : undefined;
}

export function unknownStep(name: string, steps: readonly string[]): string {
  return `there is no step "${name}"; ${suggestion(name, steps)}`;
}

function suggestion(name: string, known: readonly string[]): string {
  const meant = closestMatch(name, known);
  return meant === undefined ? `use one of ${known.join(", ")}` : `did you mean "${meant}"?`;
}

function unknownRoot(root: string): string {
  if (/^[A-Z][A-Z0-9_]*(?::-.*)?$/.test(root)) {
    return "environment variables are not expanded in workflows; write $${ for a plain ${";
  }
  return `there is no ${root}; ${suggestion(root, ["input", "steps", "item", "index"])}`;
}

/** Comparisons of a state with a word that no state has: they could never be true. */
export function* unknownStates(condition: Condition): Generator<string, void, undefined> {
  if (condition.kind === "not") yield* unknownStates(condition.operand);
  if (condition.kind !== "binary") return;
  const { left, right } = condition;
  yield* unknownStates(left);
  yield* unknownStates(right);
  for (const [one, other] of [[left, right] as const, [right, left] as const]) {
    if (one.kind !== "reference" || one.path[0] !== "steps" || one.path[2] !== "state") continue;
    if (other.kind !== "literal" || STEP_STATES.some((state) => state === other.value)) continue;
    yield `${printReference(one)} is never ${other.value}; ${suggestion(String(other.value), STEP_STATES)}`;
  }
}
