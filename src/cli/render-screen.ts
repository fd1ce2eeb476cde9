import type { Notification, Screen, SimulatedTask } from "../simulator/index.ts";
import { ensureNewline, safeLine, safeText } from "./text-form.ts";

/** What a phone has on its screen for a task: the answer as it is, everything beside it in brackets. */
export function renderScreen(screen: Screen): string {
  const { data, failure, files, notes, painted, state, statusBar, text, thinking } = screen;
  return [
    ...notes.map((note) => tagged("entry", note)),
    ...(thinking === undefined ? [] : [tagged(thinking.folded ? "thoughts, folded" : "thinking", thinking.text)]),
    ...(screen.dots ? ["[...]\n"] : []),
    ...(text === "" ? [] : [painted ? ensureNewline(safeText(text)) : tagged("not shown before the end", text)]),
    ...data.map((part) => tagged("data", JSON.stringify(part))),
    ...files.map(({ mimeType, name, shown }) => tagged(shown ? "file" : "file, not shown", `${name} (${mimeType})`)),
    ...(statusBar === "" ? [] : [tagged("status", statusBar)]),
    ...(failure === undefined ? [] : [tagged("failed", failure)]),
    ...(state === "completed" || failure !== undefined ? [] : [`[${state}]\n`]),
  ].join("");
}

export function renderNotification({ cut, directives, pushDataId, text, title }: Notification): string {
  return [
    tagged("notification", cut ? `${title}…` : title),
    ...(text === undefined ? [] : [tagged("behind it", text)]),
    ...(pushDataId === undefined ? [] : [tagged("asks for", pushDataId)]),
    ...directives.map((directive) => tagged("command", JSON.stringify(directive))),
  ].join("");
}

export function screenRecord(task: SimulatedTask): object {
  const { conversationId, ending, id, ignored, said, shown } = task;
  return { task: { id, conversationId, said, ending: ending ?? null, shown, ignored }, screen: task.screen() };
}

function tagged(tag: string, text: string): string {
  return `[${tag}] ${safeLine(text)}\n`;
}
