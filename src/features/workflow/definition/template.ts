/** Templates: how a step's message, condition and list of items are made from the input and from earlier steps. */

import { isDeepStrictEqual } from "node:util";
import { isObject, type JsonValue } from "../../../core/model/json.ts";
import type { Part } from "../../../core/model/message.ts";
import { closestMatch } from "../../../core/model/suggestions.ts";
import { ExpressionError, endOfReference, parseReference, printReference } from "./expression.ts";
import type { Condition, InputTemplate, Operator, Reference, Scope, Template } from "./plan.ts";

/** A template that cannot be rendered with what the steps before it returned. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
}

/** More runs of one step than anyone waits for. */
export const MAX_ITEMS = 10_000;

/** Reads a string with `${…}` in it; `$${` stands for a plain `${`. */
export function parseTemplate(text: string): Template {
  const pieces: (string | Reference)[] = [];
  let plain = "";
  let at = 0;
  while (at < text.length) {
    const start = text.indexOf("${", at);
    if (start === -1) break;
    if (text[start - 1] === "$" && start > at) {
      plain += `${text.slice(at, start - 1)}\${`;
      at = start + 2;
      continue;
    }
    const end = endOfReference(text, start);
    if (end === undefined)
      throw new ExpressionError("the closing } is missing; write $${ for a plain ${", text.slice(start));
    plain += text.slice(at, start);
    if (plain !== "") pieces.push(plain);
    plain = "";
    pieces.push(parseReference(text.slice(start + 2, end - 1)));
    at = end;
  }
  plain += text.slice(at);
  if (plain !== "") pieces.push(plain);
  const [first = ""] = pieces;
  if (pieces.length > 1) return { kind: "text", pieces };
  return typeof first === "string" ? { kind: "literal", value: first } : first;
}

/** The text that `parseTemplate` reads as this template. */
export function printTemplate(template: Extract<Template, { kind: "reference" | "literal" | "text" }>): string {
  if (template.kind === "reference") return printReference(template);
  if (template.kind === "literal") return escapeText(String(template.value));
  return template.pieces
    .map((piece) => (typeof piece === "string" ? escapeText(piece) : printReference(piece)))
    .join("");
}

const escapeText = (text: string): string => text.replaceAll("${", "$$${");

/** Every reference in a template. */
export function* referencesOf(template: Template | Condition): Generator<Reference, void, undefined> {
  switch (template.kind) {
    case "reference":
      yield template;
      return;
    case "text":
      for (const piece of template.pieces) if (typeof piece !== "string") yield piece;
      return;
    case "list":
      for (const item of template.items) yield* referencesOf(item);
      return;
    case "map":
      for (const member of template.members.values()) yield* referencesOf(member);
      return;
    case "not":
      yield* referencesOf(template.operand);
      return;
    case "binary":
      yield* referencesOf(template.left);
      yield* referencesOf(template.right);
  }
}

/** The message that a step sends. Throws a TemplateError. */
export function renderInput(template: InputTemplate, scope: Scope): readonly Part[] {
  if ("value" in template) return renderWhole(template.value, scope);
  const { text, data, parts = [] } = template;
  return [
    ...(text === undefined ? [] : [{ text: encode(renderValue(text, scope)) }]),
    ...(data === undefined ? [] : [{ data: renderValue(data, scope) ?? null }]),
    ...parts.flatMap((reference) => partsAt(reference, scope)),
  ];
}

/** Text becomes a text part, parts and artifacts are passed on as they are, any other value becomes a data part. */
function renderWhole(template: Template, scope: Scope): readonly Part[] {
  if (template.kind === "reference" && isReferenceToParts(template)) return partsAt(template, scope);
  const value = renderValue(template, scope);
  if (value === undefined) return [{ text: "" }];
  return typeof value === "string" ? [{ text: value }] : [{ data: value }];
}

export function isReferenceToParts({ path: [root, second, third] }: Reference): boolean {
  return (root === "input" && second === "parts") || (root === "steps" && third === "artifacts");
}

function partsAt(reference: Reference, scope: Scope): readonly Part[] {
  const parts = toParts(resolve(reference, scope));
  if (parts === undefined) throw new TemplateError(`${printReference(reference)} is neither an artifact nor a part`);
  return parts;
}

function toParts(value: unknown): readonly Part[] | undefined {
  if (value === undefined) return [];
  if (Array.isArray(value)) {
    const parts = value.map(toParts);
    return parts.every((some) => some !== undefined) ? parts.flat() : undefined;
  }
  if (!isObject(value)) return undefined;
  if (Array.isArray(value.parts)) return toParts(value.parts);
  return isPart(value) ? [value] : undefined;
}

function isPart(value: object): value is Part {
  return ["text", "raw", "url", "data"].some((kind) => Object.hasOwn(value, kind));
}

/** The items of a `foreach`. Throws a TemplateError. */
export function readItems(foreach: Template, scope: Scope): readonly JsonValue[] {
  const items = renderValue(foreach, scope) ?? [];
  const name = foreach.kind === "reference" ? printReference(foreach) : "foreach";
  if (!Array.isArray(items)) throw new TemplateError(`${name} must be a list, not ${nameOf(items)}`);
  if (items.length > MAX_ITEMS) throw new TemplateError(`${name} has ${items.length} items, more than ${MAX_ITEMS}`);
  return items;
}

/** Undefined: the value is one of a step that did not complete. */
function renderValue(template: Template, scope: Scope): JsonValue | undefined {
  switch (template.kind) {
    case "literal":
      return template.value;
    case "reference":
      return resolve(template, scope);
    case "text":
      return template.pieces
        .map((piece) => (typeof piece === "string" ? piece : encode(resolve(piece, scope))))
        .join("");
    case "list":
      return template.items.map((item) => renderValue(item, scope) ?? null);
    case "map":
      return Object.fromEntries([...template.members].map(([key, value]) => [key, renderValue(value, scope) ?? null]));
  }
}

/** Inside a text. */
function encode(value: JsonValue | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * The value of a reference. One of a step that did not complete may be absent, so that a step can gather what the
 * branches before it returned; elsewhere an absent value is an error.
 */
function resolve(reference: Reference, scope: Scope): JsonValue | undefined {
  const { value, missing } = lookUp(reference.path, scope);
  if (missing === undefined) return value;
  const [root, name = ""] = reference.path;
  const step = root === "steps" && Object.hasOwn(scope.steps, name) ? scope.steps[name] : undefined;
  if (step !== undefined && step.state !== "completed") return undefined;
  const parent = reference.path.slice(0, missing).join(".");
  const member = reference.path[missing] ?? "";
  const known = isObject(value) || Array.isArray(value) ? Object.keys(value) : [];
  const meant = closestMatch(member, known);
  const hint = meant === undefined ? "" : `; did you mean "${meant}"?`;
  throw new TemplateError(`${printReference(reference)}: ${parent || "a workflow"} has no ${member}${hint}`);
}

/** Own members only. `missing` is the place in the path that is absent; `value` is then what comes before it. */
function lookUp(path: readonly string[], scope: Scope): { value: JsonValue | undefined; missing?: number } {
  let value: unknown = scope;
  for (const [at, segment] of path.entries()) {
    const inside = typeof value === "object" && value !== null && Object.hasOwn(value, segment);
    const next: unknown = inside ? Reflect.get(value as object, segment) : undefined;
    if (next === undefined) return { value: value as JsonValue, missing: at };
    value = next;
  }
  return { value: value as JsonValue };
}

function nameOf(value: JsonValue): string {
  if (value === null) return "null";
  return typeof value === "object" ? "a map" : typeof value === "string" ? "text" : String(value);
}

/** Whether a step runs. What is absent counts as null. */
export function evaluate(condition: Condition, scope: Scope): boolean {
  // `false`, `null`, `0` and an empty text are false.
  return Boolean(valueIn(condition, scope));
}

function valueIn(condition: Condition, scope: Scope): JsonValue {
  switch (condition.kind) {
    case "literal":
      return condition.value;
    case "reference": {
      const { value, missing } = lookUp(condition.path, scope);
      return missing === undefined ? (value ?? null) : null;
    }
    case "not":
      return !evaluate(condition.operand, scope);
    case "binary": {
      const { operator, left, right } = condition;
      if (operator === "&&") return evaluate(left, scope) && evaluate(right, scope);
      if (operator === "||") return evaluate(left, scope) || evaluate(right, scope);
      return compare(operator, valueIn(left, scope), valueIn(right, scope));
    }
  }
}

function compare(operator: Exclude<Operator, "&&" | "||">, left: JsonValue, right: JsonValue): boolean {
  const [one, other] = [alike(left, right), alike(right, left)];
  if (operator === "==") return isDeepStrictEqual(one, other);
  if (operator === "!=") return !isDeepStrictEqual(one, other);
  const ordered =
    (typeof one === "number" && typeof other === "number") || (typeof one === "string" && typeof other === "string");
  if (!ordered) return false;
  if (operator === "<") return one < other;
  if (operator === "<=") return one <= other;
  return operator === ">" ? one > other : one >= other;
}

/** Agents that answer with text may mean a number or a truth value: text is compared with one by what it reads as. */
function alike(value: JsonValue, other: JsonValue): JsonValue {
  if (typeof value !== "string" || (typeof other !== "number" && typeof other !== "boolean")) return value;
  const text = value.trim();
  if (typeof other === "boolean") return text === "true" ? true : text === "false" ? false : value;
  return /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text) ? Number(text) : value;
}
