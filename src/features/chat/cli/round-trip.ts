/** Proves that a room works by a round trip: posts, reads the post back, edits it and sends a file. */

import { randomBytes } from "node:crypto";
import { type Check, failed, messageOf, ok, skipped } from "../../../core/cli/doctor/checks.ts";
import type { Channel } from "../../../core/wire/channel.ts";
import { ChannelError } from "../../../core/wire/channel.ts";
import { DialError } from "../../../core/wire/dial-error.ts";
import type { PostReader } from "./post-reader.ts";

export interface RoundTripOptions {
  readonly channel: Channel;
  readonly reader: PostReader;
  readonly room: string;
  readonly agent: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** A network that shows a participant its own posts does so at once. */
const MAX_ECHO_MS = 5_000;

export async function* checkRoom(options: RoundTripOptions): AsyncGenerator<Check> {
  const { agent, channel, reader, room, signal, timeoutMs } = options;
  const mark = randomBytes(4).toString("hex");
  const text = `Test ${mark} of dragoman: the agent ${agent} can post here.`;
  const step = (what: string) => `${what} ${room}`;
  const posted: string[] = [];
  let id: string;
  try {
    ({ id } = await within(channel.post({ room, text }), timeoutMs));
    posted.push(id);
    yield ok(step("post to"), `accepted as ${id}`);
  } catch (error) {
    yield failed(step("post to"), explainPost(error, room));
    return;
  }
  const isEcho = (post: { readonly text: string }) => (post.text.includes(mark) ? true : undefined);
  const echoed = await reader.first(isEcho, Math.min(timeoutMs, MAX_ECHO_MS), signal);
  yield echoed === true
    ? ok(step("read back from"), "the network shows the post")
    : skipped(step("read back from"), "the network does not show a participant its own posts, or not at once");
  if (channel.edit === undefined) yield skipped(step("edit in"), "posts cannot be edited there");
  else yield await attempt(step("edit in"), "edited", within(channel.edit(id, { room, text: `${text} ✓` }), timeoutMs));
  if (channel.abilities.maxFileBytes === 0) yield skipped(step("file to"), "files cannot be sent there");
  else {
    const file = { name: "dragoman-test.txt", mediaType: "text/plain", bytes: Buffer.from(`Test ${mark}\n`) };
    const sent = channel
      .post({ room, text: `A file of test ${mark}.`, files: [file] })
      .then((one) => posted.push(one.id));
    yield await attempt(step("file to"), "accepted", within(sent, timeoutMs));
  }

  if (channel.delete === undefined) yield skipped(step("delete in"), "posts cannot be deleted there");
  else {
    const removed = Promise.all(posted.map((one) => channel.delete?.(one, room)));
    yield await attempt(step("delete in"), "the posts of this test are deleted", within(removed, timeoutMs));
  }

  async function attempt(name: string, detail: string, done: Promise<unknown>): Promise<Check> {
    try {
      await done;
      return ok(name, detail);
    } catch (error) {
      return failed(name, explainPost(error, room));
    }
  }
}

function explainPost(error: unknown, room: string): string {
  if (!(error instanceof ChannelError)) return messageOf(error);
  const hints = {
    closed: "The connection was closed meanwhile; is the account used elsewhere?",
    "rate-limited": "The network limits the rate; try again later.",
    refused: "The network refuses the post.",
    "no-access": `Is ${room} the right room, and is the agent a member that may post there?`,
  } as const satisfies Record<ChannelError["code"], string>;
  return `${error.message} ${hints[error.code]}`;
}

/** Rejects after the time. */
export async function within<T>(work: Promise<T>, milliseconds: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new DialError("timeout", `Timed out after ${milliseconds / 1_000} s.`)),
      milliseconds,
    );
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
