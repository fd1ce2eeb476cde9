import { type ChannelAbilities, ChannelError, type PostDraft } from "../../../core/wire/channel.ts";

/** Throws a `ChannelError` for a draft that the network would refuse or truncate: call it before anything is sent. */
export function checkDraft(draft: PostDraft, { text, lines, maxFileBytes }: ChannelAbilities): void {
  const length = text.unit === "bytes" ? Buffer.byteLength(draft.text) : draft.text.length;
  const { files = [] } = draft;
  const max = files.length === 0 ? text.max : (text.maxWithFiles ?? text.max);
  if (length > max) throw refused(`The text has ${length} ${text.unit}; the maximum is ${max}.`);
  if (!lines && /[\r\n]/.test(draft.text)) throw refused("The text has several lines; a post has one.");
  if (files.length > 0 && maxFileBytes === 0) throw refused("Files cannot be sent.");
  const large = files.find(({ bytes }) => bytes.byteLength > maxFileBytes);
  if (large !== undefined) {
    throw refused(`The file ${large.name} has ${large.bytes.byteLength} bytes; the maximum is ${maxFileBytes}.`);
  }
  if (draft.text === "" && files.length === 0) throw refused("The post is empty.");
}

function refused(message: string): ChannelError {
  return new ChannelError("refused", message);
}
