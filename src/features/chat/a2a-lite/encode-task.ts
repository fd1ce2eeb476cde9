/** A message of the model as a task for a peer. */

import { withoutHops } from "../../../core/model/extensions.ts";
import { type Loss, toLoss } from "../../../core/model/loss.ts";
import type { SendInput } from "../../../core/model/operation.ts";
import type { DraftFile } from "../../../core/wire/channel.ts";
import { encodeMessage } from "./encode.ts";
import { LOSSES } from "./losses.ts";
import { ACCEPTS_DATA, type LiteMessage } from "./message.ts";

interface EncodedTask {
  readonly message: LiteMessage;
  readonly files: readonly DraftFile[];
}

/** `hops`: agents that the work passes through, this one included. */
export function encodeTask(id: string, input: SendInput, hops: number | undefined, losses: Loss[]): EncodedTask {
  const { configuration = {}, message } = input;
  const { metadata = {}, ...rest } = message;
  const { skill, skillId, ...others } = metadata;
  const named = [skill, skillId].find((value) => typeof value === "string" && value !== "");
  const { returnImmediately: _here, ...wishes } = configuration;
  const requested = withoutHops(input.metadata) ?? {};
  if (Object.keys({ ...wishes, ...requested }).length > 0) losses.push(toLoss(LOSSES.configuration, "configuration"));
  const kept = Object.keys(others).length === 0 ? rest : { ...rest, metadata: others };
  const { body, files } = encodeMessage(kept, "message", losses);
  return {
    message: {
      type: "task",
      id,
      body,
      attachments: files.map(({ name }) => name),
      others: {},
      // The result is read by a program.
      accept: ACCEPTS_DATA,
      ...(typeof named === "string" && { skill: named }),
      ...(hops !== undefined && { hops }),
    },
    files,
  };
}
