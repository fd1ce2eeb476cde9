/** Decodes posts. */

import { omitUndefined } from "../../../core/model/json.ts";
import { type Body, fromLine, readBody, unescapeChat } from "./body.ts";
import { isLineBreak, isSpace } from "./characters.ts";
import { findMarker, type Marker, readMarker } from "./marker.ts";
import { type LiteMessage, type LiteType, type ParsedPost, type Piece, STATES, TERMINAL_STATES } from "./message.ts";

/** The parameters of each type; those of every type are added to them. */
const PARAMETERS = {
  discover: [],
  card: [],
  task: ["id", "skill", "priority", "accept"],
  status: ["task", "state", "progress", "eta"],
  result: ["task", "state", "artifacts"],
  cancel: ["task", "reason"],
  ack: ["task"],
} as const satisfies Record<LiteType, readonly string[]>;

const COMMON_PARAMETERS = ["to", "from", "hops", "mid", "part"] as const;

const TYPES = Object.keys(PARAMETERS) as readonly LiteType[];

export function isKnownParameter(type: LiteType, key: string): boolean {
  const name = key.toLowerCase();
  return [...PARAMETERS[type], ...COMMON_PARAMETERS].some((known) => known === name);
}

/** Maximum length of ids of tasks and messages, in UTF-16 code units. */
const MAX_ID_LENGTH = 256;

export interface PostFormat {
  /** Posts of this network are one line: line breaks in the text are written `\n`. */
  readonly singleLine?: boolean;
}

/** Never throws. Takes time in proportion to the length of the text. */
export function parsePost(text: string, { singleLine = false }: PostFormat = {}): ParsedPost {
  const start = findMarker(text);
  if (start === undefined || start.escapes > 0) return { kind: "chat", text: unescapeChat(text) };
  const marker = readMarker(text, start.at);
  if (typeof marker === "string") return { kind: "chat", text, problem: marker };
  const type = TYPES.find((known) => known === marker.type);
  if (type === undefined) return { kind: "chat", text, problem: `unknown type "${marker.type.slice(0, 40)}"` };
  const parameters = new Parameters(type, marker);
  const emphasis = text.slice(start.at - start.emphasis, start.at);
  const end = text.startsWith(emphasis, marker.end) ? marker.end + emphasis.length : marker.end;
  const rest = text.slice(startOfBody(text, end));
  try {
    const piece = parameters.piece();
    const message = parameters.message(readBody(singleLine ? fromLine(rest) : rest));
    return { kind: "message", message, piece };
  } catch (error) {
    if (!(error instanceof MarkerProblem)) throw error;
    const named = omitUndefined({ task: parameters.namedTask(), to: parameters.to });
    return { kind: "invalid", type, ...named, problem: error.message };
  }
}

/** The body starts in the next line, or after one space in the marker's own. */
function startOfBody(text: string, end: number): number {
  let at = end;
  while (at < text.length && (isSpace(text.charCodeAt(at)) || text[at] === "\r")) at++;
  if (text[at] === "\n") return at + 1;
  return isSpace(text.charCodeAt(end)) || isLineBreak(text.charCodeAt(end)) ? end + 1 : end;
}

class MarkerProblem extends Error {}

const HIDDEN = /[\p{C}\p{Zl}\p{Zp}]/u;
const DIGITS = /^\d{1,9}$/;
const PART = /^(\d{1,4})\/(\d{1,4})$/;

function isUsableId(id: string | undefined): id is string {
  return id !== undefined && id.trim() !== "" && id.length <= MAX_ID_LENGTH && !HIDDEN.test(id);
}

/** Words of other agents for the same state. */
const STATE_ALIASES: ReadonlyMap<string, string> = new Map([
  ["canceled", "cancelled"],
  ["input_required", "input-required"],
]);

class Parameters {
  readonly #type: LiteType;
  readonly #known = new Map<string, string>();
  readonly #others = new Map<string, string>();
  #problem: string | undefined;

  constructor(type: LiteType, { invisible, parameters }: Marker) {
    this.#type = type;
    if (invisible) this.#problem = "the marker has invisible characters";
    for (const [key, value] of parameters) {
      const name = key.toLowerCase();
      if (!isKnownParameter(type, name)) {
        if (key !== "__proto__" && key !== "" && !this.#others.has(key)) this.#others.set(key, value);
      } else if (this.#known.has(name)) this.#problem ??= `${name} is given twice`;
      else this.#known.set(name, value);
    }
  }

  get to(): string | undefined {
    return this.#known.get("to");
  }

  piece(): Piece | undefined {
    const part = this.#known.get("part");
    if (part === undefined) return undefined;
    const [, number = "", total = ""] = PART.exec(part) ?? [];
    const piece = { mid: this.#known.get("mid") ?? this.#defaultMid(), part: Number(number), of: Number(total) };
    if (!(piece.part >= 1 && piece.part <= piece.of)) throw new MarkerProblem("part must be like 2/3");
    if (!isUsableId(piece.mid)) throw new MarkerProblem("mid must be 1 to 256 visible characters");
    return piece;
  }

  /** Agents that know `part` only send one message of a type and task at a time. */
  #defaultMid(): string {
    return [this.#type, this.#known.get("task") ?? this.#known.get("id")].join(" ").trim();
  }

  /** The id that it names, if it can be used. */
  namedTask(): string | undefined {
    const id = this.#find("task") ?? this.#find("id");
    return isUsableId(id) ? id : undefined;
  }

  message({ attachments, body }: Body): LiteMessage {
    if (this.#problem !== undefined) throw new MarkerProblem(this.#problem);
    const specific = this.#specific();
    const common = omitUndefined({ to: this.to, from: this.#known.get("from"), hops: this.#hops() });
    return { ...specific, body, attachments, ...common, others: Object.fromEntries(this.#others) } as LiteMessage;
  }

  #specific() {
    const type = this.#type;
    switch (type) {
      case "discover":
      case "card":
        return { type };
      case "task": {
        const id = this.#id("id", "task");
        const known = (name: string) => this.#known.get(name);
        return omitUndefined({ type, id, skill: known("skill"), priority: known("priority"), accept: known("accept") });
      }
      case "status": {
        const task = this.#id("task", "id");
        const state = this.#state(STATES);
        return omitUndefined({ type, task, state, progress: this.#known.get("progress"), eta: this.#known.get("eta") });
      }
      case "result": {
        const task = this.#id("task", "id");
        return { type, task, state: this.#state(TERMINAL_STATES), artifacts: readList(this.#known.get("artifacts")) };
      }
      case "cancel":
        return omitUndefined({ type, task: this.#id("task", "id"), reason: this.#known.get("reason") });
      case "ack":
        return { type, task: this.#id("task", "id") };
    }
  }

  #find(name: string): string | undefined {
    return this.#known.get(name) ?? this.#others.get(name);
  }

  /** `id` and `task` are easily confused by those who write markers by hand. */
  #id(name: "id" | "task", alias: "id" | "task"): string {
    let id = this.#known.get(name);
    if (id === undefined) {
      id = this.#others.get(alias);
      this.#others.delete(alias);
    }
    if (id === undefined || id.trim() === "") throw new MarkerProblem(`${this.#type} needs ${name}`);
    if (!isUsableId(id)) throw new MarkerProblem(`${name} must be 1 to ${MAX_ID_LENGTH} visible characters`);
    return id;
  }

  #state<State extends string>(states: readonly State[]): State {
    const given = this.#known.get("state")?.toLowerCase();
    if (given === undefined || given === "") throw new MarkerProblem(`${this.#type} needs state`);
    const name = STATE_ALIASES.get(given) ?? given;
    const state = states.find((known) => known === name);
    if (state === undefined) throw new MarkerProblem(`state of a ${this.#type} must be one of ${states.join(", ")}`);
    return state;
  }

  #hops(): number | undefined {
    const given = this.#known.get("hops");
    if (given === undefined) return undefined;
    if (!DIGITS.test(given)) throw new MarkerProblem("hops must be a number");
    return Number(given);
  }
}

/** Separated by commas; a comma in a name has a backslash before it. */
function readList(value: string | undefined): readonly string[] {
  if (value === undefined) return [];
  const names = [""];
  for (let at = 0; at < value.length; at++) {
    const escapes = value[at] === "\\" && (value[at + 1] === "," || value[at + 1] === "\\");
    if (escapes) at++;
    if (value[at] === "," && !escapes) names.push("");
    else names[names.length - 1] += value.charAt(at);
  }
  return names.map((name) => name.trim()).filter((name) => name !== "");
}
