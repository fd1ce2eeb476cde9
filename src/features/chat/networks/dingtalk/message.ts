/** Messages to robots as DingTalk delivers them. */

export interface DingtalkMessage {
  readonly id: string;
  /** Id of a group, or of the person who writes to the robot. */
  readonly room: string;
  readonly direct: boolean;
  readonly sender: { readonly id: string; readonly name: string };
  readonly text: string;
  readonly mentions: readonly string[];
  readonly files: readonly { readonly code: string; readonly name: string }[];
  readonly at: number | undefined;
  readonly sessionWebhook: string | undefined;
  readonly sessionWebhookExpiredTime: number | undefined;
}

type Json = Readonly<Record<string, unknown>>;

/** Undefined for what is not a message. */
export function readMessage(data: string): DingtalkMessage | undefined {
  const json = parseObject(data);
  const sender = toText(json.senderStaffId) ?? toText(json.senderId);
  const direct = json.conversationType === "1";
  const room = direct ? sender : toText(json.conversationId);
  const id = toText(json.msgId);
  if (id === undefined || sender === undefined || room === undefined) return undefined;
  const items = readItems(json);
  return {
    id,
    room,
    direct,
    sender: { id: sender, name: toText(json.senderNick) ?? sender },
    text: items.map(({ text }) => toText(text) ?? "").join(""),
    mentions: toObjects(json.atUsers).flatMap(({ staffId }) => toText(staffId) ?? []),
    files: items.flatMap(({ downloadCode, fileName }, index) => {
      const code = toText(downloadCode);
      return code === undefined ? [] : [{ code, name: toText(fileName) ?? `${id}-${index + 1}` }];
    }),
    at: toNumber(json.createAt),
    sessionWebhook: toText(json.sessionWebhook),
    sessionWebhookExpiredTime: toNumber(json.sessionWebhookExpiredTime),
  };
}

function readItems(json: Json): Json[] {
  const content = toObject(json.content);
  // In a group, a space remains of the mention.
  if (json.msgtype === "text") return [{ text: toText(toObject(json.text).content)?.replace(/^ +/, "") }];
  if (json.msgtype === "richText") return toObjects(content.richText);
  if (json.msgtype === "audio") return [{ text: content.recognition }];
  return [content];
}

function parseObject(text: string): Json {
  try {
    return toObject(JSON.parse(text));
  } catch {
    return {};
  }
}

function toObjects(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(toObject) : [];
}

function toObject(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : {};
}

function toText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function toNumber(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}
