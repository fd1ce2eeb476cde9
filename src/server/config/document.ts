import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
  visit,
  type YAMLParseError,
} from "yaml";
import { type Environment, expand } from "./expand.ts";
import { Placeholders } from "./placeholders.ts";
import { formatPath, type Path, type Problem } from "./problems.ts";

export interface Position {
  readonly line: number;
  readonly column: number;
}

interface Found {
  readonly node: Node | undefined;
  /** The key under which the node is, in its parent. */
  readonly key: Node | undefined;
}

/** A YAML text with the places of its values, and environment variables put into them. */
export class ConfigDocument {
  readonly problems: Problem[] = [];
  /** The values; undefined if the text is no YAML. */
  readonly values: unknown;
  readonly #source: string;
  readonly #lines = new LineCounter();
  readonly #document: Document;
  readonly #variables = new Map<Scalar, readonly string[]>();
  readonly #faulty = new Set<Node>();

  constructor(text: string, source: string, environment: Environment) {
    this.#source = source;
    const placeholders = new Placeholders(text);
    this.#document = parseDocument(placeholders.hidden, { lineCounter: this.#lines, prettyErrors: false });
    for (const error of tellingErrors(this.#document.errors)) {
      this.#report(error.pos[0], "", placeholders.reveal(firstLine(error.message)));
    }
    if (this.#document.errors.length > 0) return;
    this.#expand(text, placeholders, environment);
    try {
      this.values = this.#document.toJS() ?? {};
    } catch (error) {
      this.#report(0, "", error instanceof Error ? error.message : String(error));
    }
  }

  /** Where the value at a path is written, or the nearest thing around it. */
  position(path: Path): Position {
    const { node } = this.#find(path);
    return this.#at(node?.range?.[0] ?? 0);
  }

  /** Where the key itself is written. */
  keyPosition(path: Path): Position {
    const { node, key } = this.#find(path);
    return this.#at((key ?? node)?.range?.[0] ?? 0);
  }

  /** True if exactly this path is written in the file. */
  has(path: Path): boolean {
    return this.#find(path, true).node !== undefined;
  }

  /** Variables the value at a path was made of. */
  variables(path: Path): readonly string[] {
    const { node } = this.#find(path, true);
    return isScalar(node) ? (this.#variables.get(node) ?? []) : [];
  }

  /** True if the value at a path could not be made, so that nothing else can be said of it. */
  isFaulty(path: Path): boolean {
    const { node } = this.#find(path, true);
    return node !== undefined && this.#faulty.has(node);
  }

  #expand(text: string, placeholders: Placeholders, environment: Environment): void {
    visit(this.#document, {
      Scalar: (role, node, ancestors) => {
        if (typeof node.value !== "string") return;
        const written = placeholders.reveal(node.value);
        node.value = written;
        if (role === "key" || !written.includes("${")) return;
        const { value, variables, faults } = expand(written, environment);
        node.value = value;
        if (variables.length > 0) this.#variables.set(node, variables);
        const start = node.range?.[0] ?? 0;
        for (const { expression, message } of faults) {
          const offset = text.indexOf(expression, start);
          this.#faulty.add(node);
          this.#report(offset === -1 ? start : offset, formatPath(pathOf(ancestors, node)), message);
        }
      },
    });
  }

  #find(path: Path, exactly = false): Found {
    let found: Found = { node: this.#resolve(this.#document.contents), key: undefined };
    for (const step of path) {
      const next = this.#child(found.node, step);
      if (next === undefined) return exactly ? { node: undefined, key: undefined } : found;
      found = next;
    }
    return found;
  }

  #child(node: Node | undefined, step: PropertyKey): Found | undefined {
    if (isMap<Node, Node | null>(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
      return pair === undefined ? undefined : { node: this.#resolve(pair.value) ?? pair.key, key: pair.key };
    }
    if (isSeq<Node>(node)) {
      const item = node.items[Number(step)];
      return item === undefined ? undefined : { node: this.#resolve(item), key: undefined };
    }
    return undefined;
  }

  #resolve(node: Node | null | undefined): Node | undefined {
    return (isAlias(node) ? node.resolve(this.#document) : node) ?? undefined;
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

/** After a fault of syntax the rest is guesswork; keys written twice are faults of their own. */
function tellingErrors(errors: readonly YAMLParseError[]): readonly YAMLParseError[] {
  const [first] = errors.filter((error) => error.code !== "DUPLICATE_KEY");
  return errors.filter((error) => error === first || error.code === "DUPLICATE_KEY");
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? text;
}
