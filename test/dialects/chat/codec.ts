/** Lines of a chat: `#conversation: words` either way, `#conversation! CODE words` for what went wrong. */

import { ERROR_CODES, type ErrorCode, ProtocolError } from "../../../src/core/model/errors.ts";
import type { Loss, Lossy } from "../../../src/core/model/loss.ts";
import { isTextPart, type Part } from "../../../src/core/model/message.ts";
import type { SendOutcome } from "../../../src/core/model/operation.ts";
import { isInterrupted, type Task } from "../../../src/core/model/task.ts";

export type Line =
  | { readonly conversation: string; readonly words: string }
  | { readonly conversation: string; readonly code: ErrorCode; readonly words: string };

const FORM = /^#([^\s:!]+)(: |! ([A-Z_]+) )(.*)$/s;

export function toLine(line: Line): string {
  const where = `#${encodeURIComponent(line.conversation).replaceAll("!", "%21")}`;
  return "code" in line ? `${where}! ${line.code} ${escaped(line.words)}` : `${where}: ${escaped(line.words)}`;
}

export function fromLine(text: string): Line {
  const [, where, , code, words] = FORM.exec(text) ?? [];
  if (where === undefined || words === undefined) throw unreadable();
  const conversation = decoded(where);
  if (code === undefined) return { conversation, words: unescaped(words) };
  const known = ERROR_CODES.find((one) => one === code);
  if (known === undefined) throw unreadable();
  return { conversation, code: known, words: unescaped(words) };
}

/** The text of the parts, and what is not text as losses. */
export function wordsOf(parts: readonly Part[], path: string): Lossy<string> {
  const losses: Loss[] = [];
  const words: string[] = [];
  parts.forEach((part, index) => {
    if (isTextPart(part)) words.push(part.text);
    else losses.push({ kind: "dropped", path: `${path}[${index}]`, reason: "a chat carries nothing but text" });
  });
  return { value: words.join("\n"), losses };
}

export function outcomeWords(outcome: SendOutcome): Lossy<string> {
  return "message" in outcome ? wordsOf(outcome.message.parts, "message.parts") : taskWords(outcome.task);
}

function taskWords(task: Task): Lossy<string> {
  const said = wordsOf(task.status.message?.parts ?? [], "task.status.message.parts");
  const made = (task.artifacts ?? []).map(({ parts }, index) => wordsOf(parts, `task.artifacts[${index}].parts`));
  const losses = [said, ...made].flatMap((lossy) => lossy.losses);
  if (made.length > 0) losses.push({ kind: "bent", path: "task.artifacts", reason: "said as text" });
  if (isInterrupted(task.status.state)) {
    losses.push({ kind: "bent", path: "task.status.state", reason: "a question is a line like any other" });
  }
  const words = [...made, said].map(({ value }) => value).filter((value) => value !== "");
  return { value: words.length > 0 ? words.join("\n") : task.status.state, losses };
}

function escaped(words: string): string {
  return words.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll("\r", "\\r");
}

function unescaped(words: string): string {
  return words.replace(/\\([nr\\])/g, (_, letter: string) => ({ n: "\n", r: "\r" })[letter] ?? "\\");
}

function decoded(where: string): string {
  try {
    return decodeURIComponent(where);
  } catch (cause) {
    throw new ProtocolError("PARSE_ERROR", "The line names no conversation.", { cause });
  }
}

const unreadable = () => new ProtocolError("PARSE_ERROR", "The line is none of this chat.");
