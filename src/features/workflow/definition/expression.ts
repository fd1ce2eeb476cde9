/**
 * The expressions of a workflow file: references such as `${steps.outline.data.sections.0}`, and conditions that compare
 * them with literals. Nothing in them can run code, and only own members of JSON values can be reached.
 */

import type { JsonPrimitive } from "../../../core/model/json.ts";
import type { Condition, Operator, Reference } from "./plan.ts";

/** An expression that cannot be read; `fragment` is the piece of the text from where it is wrong. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
  readonly fragment: string;

  constructor(message: string, fragment: string) {
    super(message);
    // Longer ones may be written otherwise in the file, with line breaks or escapes.
    this.fragment = fragment.slice(0, MAX_FRAGMENT_LENGTH);
  }
}

const MAX_FRAGMENT_LENGTH = 20;

/** Deeper nesting than anyone writes, and far from what would exhaust the stack. */
const MAX_DEPTH = 64;
const MAX_CONDITION_LENGTH = 4_096;

const SEGMENT = /^[^\s.{}[\]"'$]+$/;

/** Reads what stands between `${` and `}`. */
export function parseReference(text: string): Reference {
  const path = text.trim().split(".");
  if (path.every((segment) => SEGMENT.test(segment))) return { kind: "reference", path };
  const indexed = /^(.*?)\[(\d+)\]/.exec(text);
  const hint = indexed === null ? "" : `; the items of a list are written ${indexed[1]}.${indexed[2]}`;
  const message = `cannot read \${${text}}; write a path such as \${steps.NAME.data.title}${hint}`;
  throw new ExpressionError(message, `\${${text}}`);
}

export const printReference = ({ path }: Reference): string => `\${${path.join(".")}}`;

/** Where the expression that begins at `${` ends, behind its brace; undefined if it does not. */
export function endOfReference(text: string, start: number): number | undefined {
  const end = text.indexOf("}", start);
  return end === -1 ? undefined : end + 1;
}

const WORD = /^\p{L}[\p{L}\p{N}_-]*$/u;
const KEYWORDS: Readonly<Record<string, JsonPrimitive>> = { true: true, false: false, null: null };

type Token =
  | { readonly kind: "operand"; readonly value: Condition; readonly at: number }
  | { readonly kind: "symbol"; readonly value: string; readonly at: number };

/** One token each: blanks, symbols, strings, numbers, words. */
const TOKEN =
  /(?<blank>\s+)|(?<symbol>[=!<>]=|&&|\|\||[!<>()])|(?<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\p{L}\p{N}_.-])|(?<word>\p{L}[\p{L}\p{N}_.-]*)/uy;

/** Reads the condition of `when`. */
export function parseCondition(text: string): Condition {
  if (text.length > MAX_CONDITION_LENGTH) {
    throw new ExpressionError(`is longer than ${MAX_CONDITION_LENGTH} characters`, text);
  }
  const tokens = [...tokensOf(text)];
  let next = 0;
  const takeSymbol = (...choices: readonly string[]): string | undefined => {
    const token = tokens[next];
    if (token?.kind !== "symbol" || !choices.includes(token.value)) return undefined;
    next++;
    return token.value;
  };
  const fail = (expected: string): never => {
    const token = tokens[next];
    const found = token === undefined ? "the end" : describeToken(token);
    throw new ExpressionError(`expected ${expected}, not ${found}`, text.slice(token?.at ?? text.length));
  };
  const chain = (operators: readonly string[], operand: (depth: number) => Condition) => (depth: number) => {
    let left = operand(depth);
    for (let operator = takeSymbol(...operators); operator !== undefined; operator = takeSymbol(...operators)) {
      left = { kind: "binary", operator: operator as Operator, left, right: operand(depth) };
    }
    return left;
  };
  const primary = (depth: number): Condition => {
    if (depth > MAX_DEPTH) throw new ExpressionError("is nested too deeply", text);
    if (takeSymbol("!") !== undefined) return { kind: "not", operand: primary(depth + 1) };
    if (takeSymbol("(") !== undefined) {
      const inner = either(depth + 1);
      if (takeSymbol(")") === undefined) fail(")");
      return inner;
    }
    const token = tokens[next];
    if (token?.kind !== "operand")
      return fail("a value such as ${steps.NAME.state}, a word, a number or a text in quotes");
    next++;
    return token.value;
  };
  const comparison = (depth: number): Condition => {
    const left = primary(depth);
    const operator = takeSymbol("==", "!=", "<=", ">=", "<", ">");
    return operator === undefined
      ? left
      : { kind: "binary", operator: operator as Operator, left, right: primary(depth) };
  };
  const both = chain(["&&"], comparison);
  const either = chain(["||"], both);
  const condition = either(0);
  if (next < tokens.length) fail("==, !=, <, >, <=, >=, && or ||");
  return condition;
}

function* tokensOf(text: string): Generator<Token, void, undefined> {
  let at = 0;
  while (at < text.length) {
    if (text.startsWith("${", at)) {
      const end = endOfReference(text, at);
      if (end === undefined) throw new ExpressionError("the closing } is missing", text.slice(at));
      yield { kind: "operand", value: parseReference(text.slice(at + 2, end - 1)), at };
      at = end;
      continue;
    }
    TOKEN.lastIndex = at;
    const { blank, symbol, string, number, word } = TOKEN.exec(text)?.groups ?? {};
    const token = blank ?? symbol ?? string ?? number ?? word;
    if (token === undefined) throw new ExpressionError(`cannot read this: ${text.slice(at, at + 20)}`, text.slice(at));
    if (symbol !== undefined) yield { kind: "symbol", value: symbol, at };
    else if (blank === undefined) yield { kind: "operand", value: { kind: "literal", value: literalOf(token) }, at };
    at += token.length;
  }
}

function literalOf(token: string): JsonPrimitive {
  if (token.startsWith('"') || token.startsWith("'")) return unquote(token);
  if (/^[-\d]/.test(token)) return Number(token);
  if (Object.hasOwn(KEYWORDS, token)) return KEYWORDS[token] ?? null;
  // A path without ${…} would be a word, and the comparison with it always false.
  if (!WORD.test(token)) throw new ExpressionError(`write \${${token}} for a value, "${token}" for a text`, token);
  return token;
}

/** With the escapes of JSON, whichever the quotes. */
function unquote(token: string): string {
  const quoted = token.startsWith("'")
    ? `"${token
        .slice(1, -1)
        .replaceAll("\\'", "'")
        .replaceAll(/(\\.)|"/g, (match, escaped) => escaped ?? `\\${match}`)}"`
    : token;
  try {
    return JSON.parse(quoted) as string;
  } catch {
    throw new ExpressionError(`cannot read the text ${token}`, token);
  }
}

const describeToken = (token: Token): string => (token.kind === "symbol" ? token.value : printCondition(token.value));

const PRECEDENCE: Readonly<Record<Operator, number>> = {
  "||": 1,
  "&&": 2,
  "==": 3,
  "!=": 3,
  "<": 3,
  "<=": 3,
  ">": 3,
  ">=": 3,
};

/** The shortest spelling that reads back as the same condition. */
export function printCondition(condition: Condition, within = 0): string {
  switch (condition.kind) {
    case "reference":
      return printReference(condition);
    case "literal":
      return printLiteral(condition.value);
    case "not":
      return `!${printCondition(condition.operand, 4)}`;
    case "binary": {
      const own = PRECEDENCE[condition.operator];
      // Chains read from left to right; comparisons do not chain.
      const left = printCondition(condition.left, own === 3 ? 4 : own);
      const text = `${left} ${condition.operator} ${printCondition(condition.right, own + 1)}`;
      return own < within ? `(${text})` : text;
    }
  }
}

function printLiteral(value: JsonPrimitive): string {
  const isWord = typeof value === "string" && WORD.test(value) && !Object.hasOwn(KEYWORDS, value);
  return isWord ? value : JSON.stringify(value);
}
