/** `${…}` and `$${` as they may stand in a file. */
const EXPRESSION = /\$\$\{|\$\{[^}\n]*\}/g;

const FIRST_PRIVATE = 0xe000;
const LAST_PRIVATE = 0xf8ff;

/**
 * Braces end an unquoted value inside `{ }`, so YAML cannot read `{ key: ${KEY} }` as it is meant. While it reads,
 * each expression is hidden behind characters of private use that are exactly as long, so that every place stays true.
 */
export class Placeholders {
  /** The text with its expressions hidden. */
  readonly hidden: string;
  readonly #expressions = new Map<string, string>();
  readonly #padding: string;
  readonly #pattern: RegExp;

  constructor(text: string) {
    const free = privateCharactersNotIn(text);
    this.#padding = free.next().value ?? "";
    const byExpression = new Map<string, string>();
    this.hidden = text.replace(EXPRESSION, (expression) => {
      const mark = byExpression.get(expression) ?? free.next().value;
      if (mark === undefined) return expression;
      byExpression.set(expression, mark);
      this.#expressions.set(mark, expression);
      return mark + this.#padding.repeat(expression.length - 1);
    });
    this.#pattern = new RegExp(`[${[...this.#expressions.keys()].join("")}]${this.#padding}+`, "g");
  }

  /** A piece of the hidden text as it was written. */
  reveal(text: string): string {
    if (!text.includes(this.#padding)) return text;
    return text.replace(this.#pattern, (hidden) => this.#expressions.get(hidden.charAt(0)) ?? hidden);
  }
}

function* privateCharactersNotIn(text: string): Generator<string, undefined, undefined> {
  for (let code = FIRST_PRIVATE; code <= LAST_PRIVATE; code++) {
    const character = String.fromCharCode(code);
    if (!text.includes(character)) yield character;
  }
}
