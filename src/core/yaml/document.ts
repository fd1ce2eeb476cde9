import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
  visit,
  type YAMLError,
  type YAMLMap,
} from "yaml";
import { formatPath, type Path, type Problem } from "./problems.ts";

interface ExpansionFault {
  /** The invalid expression as written. */
  readonly expression: string;
  readonly message: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** `$${` (a literal `${`), `${NAME}`, `${NAME:-default}`, or an invalid `${`. */
const VARIABLE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{/g;

/** Expands environment variables in a string. The default replaces a variable that is unset or empty, as in shells. */
export function expandVariables(text: string, environment: Environment) {
  const variables: string[] = [];
  const faults: ExpansionFault[] = [];
  const value = text.replace(
    VARIABLE,
    (expression: string, name: string | undefined, otherwise: string | undefined) => {
      if (expression === "$${") return "${";
      if (name === undefined) {
        const message = `cannot read this; write \${NAME} or \${NAME:-default}, or $\${ for a plain \${`;
        faults.push({ expression, message });
        return expression;
      }
      variables.push(name);
      const set = Object.hasOwn(environment, name) ? environment[name] : undefined;
      if (otherwise !== undefined) return set === undefined || set === "" ? otherwise : set;
      if (set !== undefined) return set;
      const message = `the environment variable ${name} is not set; set it, or write \${${name}:-default}`;
      faults.push({ expression, message });
      return expression;
    },
  );
  return {
    value,
    /** Whether set or not. */
    variables,
    faults,
  };
}

/** `${…}` and `$${` in a file. */
const VARIABLE_IN_YAML = /\$\$\{|\$\{[^}\n]*\}/g;

const FIRST_PRIVATE = 0xe000;
const LAST_PRIVATE = 0xf8ff;

/**
 * Braces end an unquoted value inside `{ }`, so YAML cannot parse `{ key: ${KEY} }` as intended. During parsing each
 * expression is replaced by private-use characters of the same length, so that positions stay correct.
 */
export class Placeholders {
  /** The text with placeholders for its expressions. */
  readonly hidden: string;
  readonly #expressions = new Map<string, string>();
  readonly #padding: string;
  readonly #pattern: RegExp;

  constructor(text: string) {
    const free = privateCharactersNotIn(text);
    this.#padding = free.next().value ?? "";
    const byExpression = new Map<string, string>();
    this.hidden = text.replace(VARIABLE_IN_YAML, (expression) => {
      const mark = byExpression.get(expression) ?? free.next().value;
      if (mark === undefined) return expression;
      byExpression.set(expression, mark);
      this.#expressions.set(mark, expression);
      return mark + this.#padding.repeat(expression.length - 1);
    });
    this.#pattern = new RegExp(`[${[...this.#expressions.keys()].join("")}]${this.#padding}+`, "g");
  }

  /** Replaces placeholders with the original expressions. */
  reveal(text: string): string {
    if (!text.includes(this.#padding)) return text;
    return text.replace(this.#pattern, (hidden) => this.#expressions.get(hidden.charAt(0)) ?? hidden);
  }
}

const UNCLOSED = "the closing } of this ${ is missing; write $${ for a plain ${";
/** Reparsing costs as much as parsing. */
const MAX_SUSPECTS = 10;

/**
 * Where a `${` without its brace made the text invalid: it takes the next brace on the line for its own, with the quote
 * or the end of the map before that. Without this `${` the text must be valid, or what is wrong with it another thing.
 */
function findUnclosed(text: string, found: YAMLError): number | undefined {
  const suspects = [...text.matchAll(/\$\$\{|\$\{[^}\n]*\}|\$\{/g)]
    .filter(
      ([expression]) => expression === "${" || (expression !== "$${" && /["'{[,]|\s\}$/.test(expression.slice(2))),
    )
    .slice(0, MAX_SUSPECTS);
  return suspects.find(({ index }) => {
    const without = `${text.slice(0, index)}__${text.slice(index + 2)}`;
    const [error] = parseDocument(new Placeholders(without).hidden, { prettyErrors: false, uniqueKeys: false }).errors;
    if (error === undefined) return true;
    const later = error.pos[0] - found.pos[0];
    return later > 0 || (later === 0 && error.message !== found.message);
  })?.index;
}

function* privateCharactersNotIn(text: string): Generator<string, undefined, undefined> {
  for (let code = FIRST_PRIVATE; code <= LAST_PRIVATE; code++) {
    const character = String.fromCharCode(code);
    if (!text.includes(character)) yield character;
  }
}

export interface Position {
  readonly line: number;
  readonly column: number;
}

interface FoundNode {
  readonly node: Node | undefined;
  /** Key of the node in its parent. */
  readonly key: Node | undefined;
}

type ConfigPair = Pair<Node, Node | null>;

export interface DocumentOptions {
  /** Absent: `${…}` is left as written. */
  readonly environment?: Environment;
  /** Parts of the document in which `${…}` is left as written. */
  readonly isVerbatim?: (path: Path) => boolean;
}

/** A YAML document with the positions of its values, and environment variables expanded. */
export class YamlDocument {
  readonly problems: Problem[] = [];
  /** The values; undefined if the text is not valid YAML. */
  readonly values: unknown;
  readonly #source: string;
  readonly #text: string;
  readonly #lines = new LineCounter();
  readonly #document: Document;
  readonly #variables = new Map<Scalar, readonly string[]>();
  readonly #faulty = new Set<Node>();
  /** Pairs of each map that was looked into, by key: a map may have thousands. */
  readonly #pairs = new WeakMap<Node, ReadonlyMap<string, ConfigPair>>();

  constructor(text: string, source: string, options: DocumentOptions) {
    this.#source = source;
    this.#text = text;
    const placeholders = new Placeholders(text);
    // The parser compares each key with all before it, so keys are compared here.
    const parsing = { lineCounter: this.#lines, prettyErrors: false, uniqueKeys: false };
    this.#document = parseDocument(placeholders.hidden, parsing);
    // After a syntax error, further ones are unreliable.
    const [error] = this.#document.errors;
    const unclosed = error && findUnclosed(text, error);
    if (unclosed !== undefined) this.#report(unclosed, "", UNCLOSED);
    else if (error !== undefined) this.#report(error.pos[0], "", describeError(error, placeholders));
    for (const key of repeatedKeys(this.#document.contents))
      this.#report(key.range?.[0] ?? 0, "", "Map keys must be unique");
    if (this.problems.length > 0) return;
    if (text.includes("${")) this.#expand(placeholders, options);
    try {
      this.values = this.#document.toJS() ?? {};
    } catch (error) {
      this.#report(0, "", error instanceof Error ? error.message : String(error));
    }
  }

  /** Position of the value at a path, or of its key, or of its nearest ancestor; `fragment` is a piece of the value. */
  position(path: Path, { atKey = false, fragment = "" } = {}): Position {
    const { node, key } = this.#find(path);
    const start = ((atKey && key) || node)?.range?.[0] ?? 0;
    return this.#at(this.#offsetOf(fragment, start));
  }

  /** Position of the value at exactly this path and the variables used in it; undefined if it is not in the file. */
  origin(path: Path): (Position & { readonly variables: readonly string[] }) | undefined {
    const { node } = this.#find(path, true);
    return node && { ...this.#at(node.range?.[0] ?? 0), variables: this.#variablesIn(node) };
  }

  /** Variables used in the value at a path. */
  variables(path: Path): readonly string[] {
    return this.#variablesIn(this.#find(path, true).node);
  }

  /** True if the value at a path could not be expanded, so that further checks of it are meaningless. */
  isFaulty(path: Path): boolean {
    const { node } = this.#find(path, true);
    return node !== undefined && this.#faulty.has(node);
  }

  #variablesIn(node: Node | undefined): readonly string[] {
    return (isScalar(node) && this.#variables.get(node)) || [];
  }

  #expand(placeholders: Placeholders, { environment, isVerbatim = () => false }: DocumentOptions): void {
    visit(this.#document, {
      Scalar: (role, node, ancestors) => {
        if (typeof node.value !== "string") return;
        const written = placeholders.reveal(node.value);
        node.value = written;
        if (environment === undefined || role === "key" || !written.includes("${")) return;
        const path = pathOf(ancestors, node);
        if (isVerbatim(path)) return;
        const { value, variables, faults } = expandVariables(written, environment);
        node.value = value;
        if (variables.length > 0) this.#variables.set(node, variables);
        const start = node.range?.[0] ?? 0;
        for (const { expression, message } of faults) {
          this.#faulty.add(node);
          this.#report(this.#offsetOf(expression, start), formatPath(path), message);
        }
      },
    });
  }

  #find(path: Path, exactly = false): FoundNode {
    let found: FoundNode = { node: this.#resolve(this.#document.contents), key: undefined };
    for (const step of path) {
      const next = this.#child(found.node, step);
      if (next === undefined) return exactly ? { node: undefined, key: undefined } : found;
      found = next;
    }
    return found;
  }

  #child(node: Node | undefined, step: PropertyKey): FoundNode | undefined {
    if (isMap<Node, Node | null>(node)) {
      const pair = this.#pairsOf(node).get(String(step));
      return pair === undefined ? undefined : { node: this.#resolve(pair.value) ?? pair.key, key: pair.key };
    }
    if (isSeq<Node>(node)) {
      const item = node.items[Number(step)];
      return item === undefined ? undefined : { node: this.#resolve(item), key: undefined };
    }
    return undefined;
  }

  #pairsOf(map: YAMLMap<Node, Node | null>): ReadonlyMap<string, ConfigPair> {
    let pairs = this.#pairs.get(map);
    if (pairs === undefined) {
      pairs = new Map(map.items.flatMap((pair) => (isScalar(pair.key) ? [[String(pair.key.value), pair]] : [])));
      this.#pairs.set(map, pairs);
    }
    return pairs;
  }

  #resolve(node: Node | null | undefined): Node | undefined {
    return (isAlias(node) ? node.resolve(this.#document) : node) ?? undefined;
  }

  /** Where a piece of the value that begins at `start` is in the text. */
  #offsetOf(fragment: string, start: number): number {
    return Math.max(start, this.#text.indexOf(fragment, start));
  }

  #report(offset: number, path: string, message: string): void {
    this.problems.push({ source: this.#source, ...this.#at(offset), path, message });
  }

  #at(offset: number): Position {
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  }
}

function pathOf(ancestors: readonly unknown[], node: Node): PropertyKey[] {
  const path: PropertyKey[] = [];
  ancestors.forEach((ancestor, index) => {
    const child = ancestors[index + 1] ?? node;
    if (isSeq(ancestor)) path.push(ancestor.items.indexOf(child));
    else if (isPairLike(ancestor)) path.push(isScalar(ancestor.key) ? String(ancestor.key.value) : "?");
  });
  return path;
}

function isPairLike(value: unknown): value is { readonly key: unknown } {
  return typeof value === "object" && value !== null && "key" in value && "value" in value && !isScalar(value);
}

/** Keys that occur earlier in the same map, in the order of the text. */
function repeatedKeys(node: unknown, repeated: Node[] = []): readonly Node[] {
  if (isMap(node)) {
    const seen = new Set<unknown>();
    for (const { key, value } of node.items) {
      if (isScalar(key)) {
        if (seen.has(key.value)) repeated.push(key);
        seen.add(key.value);
      } else repeatedKeys(key, repeated);
      repeatedKeys(value, repeated);
    }
  } else if (isSeq(node)) for (const item of node.items) repeatedKeys(item, repeated);
  return repeated;
}

function describeError({ message }: YAMLError, placeholders: Placeholders): string {
  // The parser reports what its recursion throws as an error of the text.
  if (message.includes("call stack")) return "is nested too deeply";
  return placeholders.reveal(message.split("\n", 1)[0] ?? message);
}
