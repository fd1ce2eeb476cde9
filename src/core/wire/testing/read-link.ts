import { type Link, LinkError } from "../link.ts";

export async function readAll(link: Link): Promise<string[]> {
  const texts: string[] = [];
  for await (const text of link.messages) texts.push(text);
  return texts;
}

/** So many, or fewer if the link ends before. The link stays open. */
export async function readSome(link: Link, count: number): Promise<string[]> {
  const seen: string[] = [];
  const reader = link.messages[Symbol.asyncIterator]();
  while (seen.length < count) {
    const step = await reader.next();
    if (step.done) break;
    seen.push(step.value);
  }
  return seen;
}

/** Why something is refused. */
export function linkErrorCode(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof LinkError) return error.code;
    throw error;
  }
  return "accepted";
}
