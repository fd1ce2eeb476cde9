/** Encodes messages as posts; the inverse of `parse.ts`. */

import { escapeChat, formatBody, toLine } from "./body.ts";
import { normalizeText } from "./characters.ts";
import { formatValue } from "./marker.ts";
import type { LiteMessage, Piece } from "./message.ts";
import { isKnownParameter, type PostFormat } from "./parse.ts";

export function formatMessage(message: LiteMessage, piece?: Piece, { singleLine = false }: PostFormat = {}): string {
  const marker = formatMarker(message, piece);
  const body = formatBody({ ...message, body: normalizeText(message.body) }).toWellFormed();
  if (body === "") return marker;
  return singleLine ? `${marker} ${toLine(body)}` : `${marker}\n${body}`;
}

/** Plain chat, written so that no agent takes it for a message, whatever the network does to it. */
export function formatChat(text: string): string {
  return escapeChat(normalizeText(text));
}

function formatMarker(message: LiteMessage, piece?: Piece): string {
  const { from, hops, others, to, type } = message;
  const known = { ...parametersOf(message), to, from, hops };
  let marker = `[A2A:${type}`;
  const add = (name: string, value: string | number | undefined) => {
    if (value !== undefined) marker += ` ${name}=${formatValue(String(value).toWellFormed())}`;
  };
  for (const [name, value] of Object.entries(known)) add(name, value);
  for (const [name, value] of Object.entries(others)) {
    if (KEY.test(name) && !isKnownParameter(type, name)) add(name, value);
  }
  if (piece !== undefined) add("mid", piece.mid);
  return piece === undefined ? `${marker}]` : `${marker} part=${piece.part}/${piece.of}]`;
}

const KEY = /^[\w.-]+$/;

function parametersOf(message: LiteMessage): Readonly<Record<string, string | undefined>> {
  switch (message.type) {
    case "discover":
    case "card":
      return {};
    case "task":
      return { id: message.id, skill: message.skill, priority: message.priority, accept: message.accept };
    case "status":
      return { task: message.task, state: message.state, progress: message.progress, eta: message.eta };
    case "result":
      return { task: message.task, state: message.state, artifacts: formatList(message.artifacts) };
    case "cancel":
      return { task: message.task, reason: message.reason };
    case "ack":
      return { task: message.task };
  }
}

function formatList(names: readonly string[]): string | undefined {
  const list = names.filter((name) => name.trim() !== "").map((name) => name.replaceAll(/[\\,]/g, "\\$&"));
  return list.length === 0 ? undefined : list.join(",");
}
