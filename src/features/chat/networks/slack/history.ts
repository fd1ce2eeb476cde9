/** What was posted while the app was not connected. */

import type { WebClient } from "@slack/web-api";
import type { SlackMessage } from "./posts.ts";

const PAGE = 100;
const MAX_PAGES = 10;

/** `cursors` are the times of the last messages that are known. Threads are found by their last reply. */
export async function readMissed(
  web: WebClient,
  cursors: ReadonlyMap<string, string>,
  receive: (message: SlackMessage) => Promise<void>,
  onError: (error: unknown) => void,
): Promise<void> {
  for (const [channel, cursor] of cursors) {
    try {
      for (const message of await readChannel(web, channel, cursor)) await receive({ ...message, channel });
    } catch (error) {
      onError(error);
    }
  }
}

async function readChannel(web: WebClient, channel: string, oldest: string): Promise<SlackMessage[]> {
  const missed: SlackMessage[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const options = { channel, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
    const { messages = [], response_metadata } = await web.conversations.history(options);
    for (const message of messages as SlackMessage[]) {
      if (isNewer(message.ts, oldest)) missed.push(message);
      if (isNewer(message.latest_reply, oldest)) missed.push(...(await readThread(web, channel, message, oldest)));
    }
    cursor = response_metadata?.next_cursor;
    // Newest first.
    if (!cursor || !isNewer((messages as SlackMessage[]).at(-1)?.ts, oldest)) break;
  }
  return missed.sort((one, other) => Number(one.ts) - Number(other.ts));
}

async function readThread(
  web: WebClient,
  channel: string,
  { ts = "" }: SlackMessage,
  oldest: string,
): Promise<SlackMessage[]> {
  const { messages = [] } = await web.conversations.replies({ channel, ts, oldest, limit: PAGE });
  // The first message of the thread is always part of the answer.
  return (messages as SlackMessage[]).filter((reply) => reply.ts !== ts && isNewer(reply.ts, oldest));
}

function isNewer(ts: string | undefined, than: string): boolean {
  return ts !== undefined && Number(ts) > Number(than);
}
