import type { Output } from "../../../core/cli/output.ts";
import { safeLine } from "../../../core/model/safe-text.ts";
import type { Channel, Post } from "../../../core/wire/channel.ts";
import type { ConfiguredChannel } from "./configured.ts";
import type { PostReader } from "./post-reader.ts";

interface ListenOptions {
  readonly listenMs: number;
  readonly signal: AbortSignal;
  readonly output: Output;
}

/** Shows what others post, and with which ids, to stderr. */
export async function listen(
  { allowPeers }: ConfiguredChannel,
  { self }: Channel,
  reader: PostReader,
  { listenMs, output, signal }: ListenOptions,
): Promise<void> {
  output.info(`Listening for ${listenMs / 1_000} s. Post something that mentions ${self.name}.`);
  const show = (post: Post): undefined => {
    const { direct, mentions, room, sender, text } = post;
    if (sender.self || sender.id === self.id) return;
    const isAllowed = allowPeers === "*" || allowPeers.includes(sender.id);
    const facts = [
      sender.bot ? "a bot" : undefined,
      sender.verified ? undefined : "not authenticated by the network",
      direct || mentions.includes(self.id) ? "addresses the agent" : undefined,
      isAllowed ? "may give it work" : "may not give it work",
    ].filter((fact) => fact !== undefined);
    output.info(safeLine(`${room}  ${sender.name} (${sender.id}; ${facts.join("; ")}): ${text}`));
  };
  await reader.first(show, listenMs, signal);
}
