/** Decodes what the platform sends: the params of `message/stream`. */

import type { CodecTools } from "../../../core/dialects/contract.ts";
import { type Members, readRequest } from "../../../core/dialects/shared/json-members.ts";
import type { ReadOptions } from "../../../core/dialects/shared/proto/json-reading.ts";
import { isObject, type JsonObject, type JsonValue, omitUndefined } from "../../../core/model/json.ts";
import type { Lossy } from "../../../core/model/loss.ts";
import { isDataPart, type Message, type Part } from "../../../core/model/message.ts";
import { nonEmptyString } from "./control.ts";
import { XIAOYI_EXTENSION } from "./metadata.ts";
import { decodeKnownPart } from "./parts.ts";

/** The platform's variables: groups are objects, as devices send them, or lists of objects, as documented. */
type VariableGroup = "systemVariables" | "clientVariables" | "memoryVariables";

function mergeVariables(variables: JsonObject, group: VariableGroup): JsonObject {
  const found = variables[group];
  if (isObject(found)) return found;
  const merged: Record<string, JsonValue> = {};
  for (const one of Array.isArray(found) ? (found as readonly JsonValue[]) : []) {
    if (isObject(one)) Object.assign(merged, fromNameAndValue(one));
  }
  return merged;
}

/** In lists, a variable may also be encoded as a name and a value. */
function fromNameAndValue(one: JsonObject): JsonObject {
  const { name, value } = one;
  return typeof name === "string" && value !== undefined && name !== "__proto__" ? { [name]: value } : one;
}

/** An event of the device, as opposed to input from the user. */
interface DeviceEvent {
  readonly namespace: string;
  readonly name: string;
  readonly payload: JsonObject;
}

export interface DecodedMessage {
  /** The platform's id of the task. */
  readonly taskId: string;
  readonly sessionId: string;
  /** The login session that `authorize` created, if any. */
  readonly loginSessionId: string | undefined;
  /** Its context is the session; it names no task. */
  readonly message: Message;
  readonly events: readonly DeviceEvent[];
  /** False: the message holds only device events, which go to the task that waits for them. */
  readonly isTurn: boolean;
  readonly pushId: string | undefined;
}

/** Throws INVALID_PARAMS if the params are not a message. `fallback`: the session, if the params name none. */
export function decodeMessageParams(
  params: unknown,
  options: ReadOptions,
  ids: CodecTools["ids"],
  fallback?: string,
): Lossy<DecodedMessage> {
  return readRequest(params, { root: "params", ...options }, (members) => decodeParams(members, ids, fallback));
}

function decodeParams(members: Members, ids: CodecTools["ids"], fallback: string | undefined): DecodedMessage {
  const taskId = members.requiredText("id");
  const sessionId = members.text("sessionId") ?? fallback ?? members.requiredText("sessionId");
  const loginSessionId = members.text("agentLoginSessionId");
  const decoded = members.requiredObject("message", decodeMessage);
  const { events, isTurn, parts, variables } = sortParts(decoded.parts, variablesBeside(members));
  const mark = toMetadata(variables, loginSessionId);
  return {
    taskId,
    sessionId,
    loginSessionId,
    message: {
      messageId: decoded.messageId ?? ids.message(),
      role: "ROLE_USER",
      contextId: sessionId,
      parts,
      ...(mark === undefined ? undefined : { metadata: { [XIAOYI_EXTENSION]: mark } }),
    },
    events,
    isTurn,
    pushId: nonEmptyString(mergeVariables(variables, "systemVariables").push_id),
  };
}

function decodeMessage(members: Members): { readonly messageId: string | undefined; readonly parts: readonly Part[] } {
  const decoded = members.requiredList("parts", decodeKnownPart);
  const parts = decoded.filter((part) => part !== undefined);
  if (parts.length === 0 && decoded.length > 0) {
    members.reading.violateMember("parts", "must have one of text, reasoningText, file, data");
  }
  return { messageId: members.text("messageId"), parts };
}

/** Some clients send the variables beside the message instead of inside it. */
function variablesBeside(members: Members): JsonObject {
  const data = members.raw("data");
  return isObject(data) && isObject(data.variables) ? data.variables : {};
}

const EMPTY_PARTS: readonly Part[] = [{ text: "" }];

/** Variables are not part of the message's content; events are, for an agent that asked for them. */
function sortParts(all: readonly Part[], beside: JsonObject) {
  const parts: Part[] = [];
  const events: DeviceEvent[] = [];
  let variables = beside;
  let isTurn = false;
  for (const part of all) {
    if (!isDataPart(part) || !isObject(part.data)) {
      isTurn = true;
      parts.push(part);
      continue;
    }
    const { variables: found, ...rest } = part.data;
    if (isObject(found)) variables = { ...variables, ...found };
    const happened = eventsIn(rest.events);
    events.push(...happened);
    const remains = isObject(found) ? rest : part.data;
    if (Object.keys(remains).length === 0 && isObject(found)) continue;
    parts.push(remains === part.data ? part : { ...part, data: remains });
    if (happened.length === 0) isTurn = true;
  }
  return { parts: parts.length === 0 ? EMPTY_PARTS : parts, variables, events, isTurn: isTurn || events.length === 0 };
}

function eventsIn(value: JsonValue | undefined): DeviceEvent[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]).flatMap(decodeEvent) : [];
}

/** An older format has no header: it holds the name of the request and its result. */
function decodeEvent(value: JsonValue): DeviceEvent[] {
  if (!isObject(value)) return [];
  const { header, payload } = value;
  if (isObject(header) && typeof header.namespace === "string" && typeof header.name === "string") {
    return [{ namespace: header.namespace, name: header.name, payload: isObject(payload) ? payload : {} }];
  }
  return typeof value.intentName === "string" ? [{ ...RESULT_EVENT, payload: value }] : [];
}

const RESULT_EVENT = { namespace: "Common", name: "UploadExeResult" } as const;

/** The push id is an address for this server only; agents do not receive it, as they may belong to someone else. */
function toMetadata(variables: JsonObject, loginSessionId: string | undefined): JsonObject | undefined {
  const shown = withoutPushId(variables);
  const hasVariables = Object.keys(shown).length > 0;
  if (!hasVariables && loginSessionId === undefined) return undefined;
  return omitUndefined({ variables: hasVariables ? shown : undefined, agentLoginSessionId: loginSessionId });
}

function withoutPushId(variables: JsonObject): JsonObject {
  const { systemVariables, ...others } = variables;
  if (systemVariables === undefined) return variables;
  const remaining = Array.isArray(systemVariables)
    ? (systemVariables as readonly JsonValue[]).filter((one) => !namesPushId(one)).map(dropPushId)
    : dropPushId(systemVariables);
  return { ...others, systemVariables: remaining };
}

function namesPushId(value: JsonValue): boolean {
  return isObject(value) && value.name === "push_id";
}

function dropPushId(value: JsonValue): JsonValue {
  if (!isObject(value)) return value;
  const { push_id: _address, ...others } = value;
  return others;
}

/** The id in the push notification that the user tapped, if any. */
export function tappedNotificationId(events: readonly DeviceEvent[]): string | undefined {
  const trigger = events.find(({ name, namespace }) => namespace === "Common" && name === "Trigger");
  const map = trigger?.payload.dataMap;
  return isObject(map) ? nonEmptyString(map.pushDataId) : undefined;
}
