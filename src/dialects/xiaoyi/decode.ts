/** What the platform says: the params of `message/stream`. */

import { isObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import type { Lossy } from "../../model/loss.ts";
import { isDataPart, type Message, type Part } from "../../model/message.ts";
import type { CodecTools } from "../contract.ts";
import { type Members, readRequest } from "../shared/json-members.ts";
import type { ReadOptions } from "../shared/proto/json-reading.ts";
import { XIAOYI_EXTENSION } from "./metadata.ts";
import { decodeKnownPart } from "./parts.ts";

/** Variables of the platform: groups of them as objects, as devices send them, or as lists of objects, as documented. */

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

/** In lists, a variable may also be told as a name and a value. */
function fromNameAndValue(one: JsonObject): JsonObject {
  const { name, value } = one;
  return typeof name === "string" && value !== undefined && name !== "__proto__" ? { [name]: value } : one;
}

/** Something the device did or was told, not something the user said. */
interface DeviceEvent {
  readonly namespace: string;
  readonly name: string;
  readonly payload: JsonObject;
}

export interface DecodedMessage {
  /** The platform's id of the task. */
  readonly taskId: string;
  /** The conversation. */
  readonly sessionId: string;
  /** What `authorize` gave the user, if it did. */
  readonly loginSessionId: string | undefined;
  /** In the context of the session; it names no task. */
  readonly message: Message;
  readonly events: readonly DeviceEvent[];
  /** False: nothing but events of the device, which are for whoever waits for them. */
  readonly isTurn: boolean;
  /** Where the user's device can be told of something later. */
  readonly pushId: string | undefined;
}

interface MessageDefaults {
  /** Where the params name no session. */
  readonly sessionId?: string | undefined;
}

/** Throws INVALID_PARAMS for what is no message. */
export function decodeMessageParams(
  params: unknown,
  options: ReadOptions,
  ids: CodecTools["ids"],
  defaults: MessageDefaults = {},
): Lossy<DecodedMessage> {
  return readRequest(params, { root: "params", ...options }, (members) => decodeParams(members, ids, defaults));
}

function decodeParams(members: Members, ids: CodecTools["ids"], defaults: MessageDefaults): DecodedMessage {
  const taskId = members.requiredText("id");
  const sessionId = members.text("sessionId") ?? defaults.sessionId ?? members.requiredText("sessionId");
  const loginSessionId = members.text("agentLoginSessionId");
  const said = members.requiredObject("message", decodeMessage);
  const { events, isTurn, parts, variables } = sortParts(said.parts, variablesBeside(members));
  const mark = toMetadata(variables, loginSessionId);
  return {
    taskId,
    sessionId,
    loginSessionId,
    message: {
      messageId: said.messageId ?? ids.message(),
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
  const said = members.requiredList("parts", decodeKnownPart);
  const parts = said.filter((part) => part !== undefined);
  if (parts.length === 0 && said.length > 0) {
    members.reading.violateMember("parts", "must have one of text, reasoningText, file, data");
  }
  return { messageId: members.text("messageId"), parts };
}

/** Some put the variables beside the message instead of into it. */
function variablesBeside(members: Members): JsonObject {
  const data = members.raw("data");
  return isObject(data) && isObject(data.variables) ? data.variables : {};
}

interface SortedParts {
  readonly parts: readonly Part[];
  readonly variables: JsonObject;
  readonly events: readonly DeviceEvent[];
  readonly isTurn: boolean;
}

const EMPTY_PARTS: readonly Part[] = [{ text: "" }];

/** Variables are not part of what was said; events are, for an agent that asked for them. */
function sortParts(all: readonly Part[], beside: JsonObject): SortedParts {
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

/** An older form has no header: the name of what was asked for, and what came of it. */
function decodeEvent(value: JsonValue): DeviceEvent[] {
  if (!isObject(value)) return [];
  const { header, payload } = value;
  if (isObject(header) && typeof header.namespace === "string" && typeof header.name === "string") {
    return [{ namespace: header.namespace, name: header.name, payload: isObject(payload) ? payload : {} }];
  }
  return typeof value.intentName === "string" ? [{ ...RESULT_EVENT, payload: value }] : [];
}

const RESULT_EVENT = { namespace: "Common", name: "UploadExeResult" } as const;

/** The push id is an address for this server's own use, hence not for agents, which may be someone else's. */
function toMetadata(variables: JsonObject, loginSessionId: string | undefined): JsonObject | undefined {
  const shown = withoutPushId(variables);
  const hasVariables = Object.keys(shown).length > 0;
  if (!hasVariables && loginSessionId === undefined) return undefined;
  return {
    ...(hasVariables ? { variables: shown } : undefined),
    ...(loginSessionId === undefined ? undefined : { agentLoginSessionId: loginSessionId }),
  };
}

function withoutPushId(variables: JsonObject): JsonObject {
  const { systemVariables, ...others } = variables;
  if (systemVariables === undefined) return variables;
  const kept = Array.isArray(systemVariables)
    ? (systemVariables as readonly JsonValue[]).filter((one) => !namesPushId(one)).map(dropPushId)
    : dropPushId(systemVariables);
  return { ...others, systemVariables: kept };
}

function namesPushId(value: JsonValue): boolean {
  return isObject(value) && value.name === "push_id";
}

function dropPushId(value: JsonValue): JsonValue {
  if (!isObject(value)) return value;
  const { push_id: _address, ...others } = value;
  return others;
}

function nonEmptyString(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The id of what a push notification stood for, when the user tapped it. */
export function tappedNotificationId(events: readonly DeviceEvent[]): string | undefined {
  const trigger = events.find(({ name, namespace }) => namespace === "Common" && name === "Trigger");
  const map = trigger?.payload.dataMap;
  return isObject(map) ? nonEmptyString(map.pushDataId) : undefined;
}
