/** Whether one interface of an agent does what the card says, without sending it a message. */

import { randomUUID } from "node:crypto";
import { allowsAnonymous } from "../../../auth/login/security-schemes.ts";
import { abilitiesOf } from "../../../client/dialects.ts";
import { ConnectionError } from "../../../client/errors.ts";
import { type ConnectOptions, DEFAULT_TIMEOUT_MS, type Notice, type RemoteAgent } from "../../../client/options.ts";
import { createCallExchanger } from "../../../client/transport/credential-origins.ts";
import type { AgentCard, AgentInterface } from "../../../model/card.ts";
import { type ErrorCode, ProtocolError } from "../../../model/errors.ts";
import { fieldsOf } from "../../../model/json.ts";
import { parseJson } from "../../../wire/parse-json.ts";
import { type Finding, findingOf, isSo, isWrong, notChecked } from "./claims.ts";

/** By what the card claims; absent: it does not. */
export interface InterfaceFindings {
  readonly interface: Finding;
  readonly authentication?: Finding;
  readonly streaming?: Finding;
  readonly push?: Finding;
  readonly extendedCard?: Finding;
}

export interface InterfaceProbe {
  readonly card: AgentCard;
  readonly connect: ConnectOptions;
  /** How to call it with credentials, if there are any. */
  readonly login?: Pick<ConnectOptions, "credentials" | "keys" | "credentialOrigins"> | undefined;
  /** How the user can get credentials. */
  readonly loginHint: string;
}

export const UNKNOWN_METHOD = "DragomanDoctorUnknownMethod";
const SAYS_NOT_FOUND = /task\b.*\bnot found/i;

/** Every request names a task that does not exist: the agent answers without doing anything. */
export async function probeInterface(entry: AgentInterface, probe: InterfaceProbe): Promise<InterfaceFindings> {
  const { card, login } = probe;
  const unknown = randomUUID();
  const notices: Notice[] = [];
  try {
    const anonymous = await connectTo(entry, probe, {}, notices);
    if (abilitiesOf(anonymous.interface.dialect)?.operations.get === false) {
      return { interface: notChecked("its dialect allows no request but messages") };
    }
    const first = await outcomeOf(anonymous.get(unknown));
    const isRefused = first === "UNAUTHENTICATED" || first === "PERMISSION_DENIED";
    const authenticated = login === undefined ? undefined : await connectTo(entry, probe, login, notices);
    const second = isRefused ? await (authenticated && outcomeOf(authenticated.get(unknown))) : first;
    const answered = judgeAnswer(isRefused && second === undefined ? "TASK_NOT_FOUND" : second);
    if (answered.status !== "ok") return { interface: answered };
    const caller = isRefused ? authenticated : anonymous;
    const ask = async (test: (agent: RemoteAgent) => Promise<Finding>): Promise<Finding> => {
      if (caller === undefined) return notChecked(`credentials are needed: ${probe.loginHint}`);
      return test(caller).catch(findingOf);
    };
    const { extendedAgentCard, pushNotifications, streaming } = card.capabilities;
    const isBlind = (streaming === true || pushNotifications === true) && (await answersBlindly(entry, probe));
    const show = (test: (agent: RemoteAgent) => Promise<Finding>) => (isBlind ? NOT_SHOWN : ask(test));
    return {
      interface: answered,
      authentication: judgeRefusal(card, isRefused, second !== undefined && isRefused),
      streaming: streaming === true ? await show((agent) => probeStreaming(agent, unknown, notices)) : undefined,
      push: pushNotifications === true ? await show((agent) => probePush(agent, unknown)) : undefined,
      extendedCard: extendedAgentCard === true ? await probeExtendedCard(card, anonymous, authenticated) : undefined,
    };
  } catch (error) {
    return { interface: describeFailure(error) };
  }
}

/** Calls only this interface, and each time once. */
export async function connectTo(
  entry: AgentInterface,
  { card, connect }: Pick<InterfaceProbe, "card" | "connect">,
  login: ConnectOptions = {},
  notices: Notice[] = [],
): Promise<RemoteAgent> {
  const client = await import("../../../client/connect.ts");
  const required = card.capabilities.extensions?.filter((extension) => extension.required === true) ?? [];
  return client.connect(
    { ...card, supportedInterfaces: [entry] },
    {
      ...connect,
      ...login,
      extensions: required.map(({ uri }) => uri),
      onNotice: (notice) => notices.push(notice),
      retry: { attempts: 1, baseMs: 0, capMs: 0 },
    },
  );
}

/**
 * The code of the agent's error, or `answered`. Other failures are thrown. An agent that says in words that there is no
 * such task has understood the request; whether its codes are right is a matter of `conformance`.
 */
async function outcomeOf(call: Promise<unknown>): Promise<ErrorCode | "answered"> {
  try {
    await call;
    return "answered";
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
    return SAYS_NOT_FOUND.test(error.message) ? "TASK_NOT_FOUND" : error.code;
  }
}

function describeFailure(error: unknown): Finding {
  if (ConnectionError.is(error) && error.code === "no-interface") return notChecked("this client does not support it");
  return findingOf(error);
}

function judgeAnswer(outcome: ErrorCode | "answered" | undefined): Finding {
  switch (outcome) {
    case "TASK_NOT_FOUND":
      return isSo("answers");
    case "answered":
      return isWrong("returned a task for an id that no task has");
    case "UNAUTHENTICATED":
    case "PERMISSION_DENIED":
      return isWrong("refused the credentials");
    case "RESOURCE_EXHAUSTED":
      return notChecked("refuses requests because there are too many");
    case "VERSION_NOT_SUPPORTED":
      return isWrong("does not support the version that the card declares for it");
    default:
      return isWrong(`answered ${outcome} when asked for a task that does not exist, instead of TASK_NOT_FOUND`);
  }
}

function judgeRefusal(card: AgentCard, isRefused: boolean, wasAccepted: boolean): Finding {
  const accepted = wasAccepted ? ", and with them answered" : "";
  if (isRefused && allowsAnonymous(card)) {
    return isWrong(`a call without credentials is refused${accepted}, but the card demands none`);
  }
  if (isRefused) return isSo(`a call without credentials is refused${accepted}`);
  if (allowsAnonymous(card)) return isSo("the card demands none, and calls without credentials are answered");
  return isWrong("a call without the credentials that the card demands is answered");
}

const NOT_SHOWN = notChecked("not shown: even a method that does not exist is answered with TASK_NOT_FOUND");
const MAX_ANSWER_BYTES = 64 * 1024;

/** Whether an agent answers anything with an unknown task, so that this answer does not show that it knows an operation. */
async function answersBlindly({ protocolBinding, protocolVersion, url }: AgentInterface, { connect }: InterfaceProbe) {
  if (protocolBinding.toUpperCase() !== "JSONRPC") return false;
  const { fetch = globalThis.fetch, signal, timeoutMs = DEFAULT_TIMEOUT_MS } = connect;
  const exchange = createCallExchanger(fetch, MAX_ANSWER_BYTES);
  const headers = { "content-type": "application/json", accept: "application/json", "a2a-version": protocolVersion };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: UNKNOWN_METHOD, params: {} });
  try {
    const answer = await exchange({ method: "POST", url, headers, body, timeoutMs, signal });
    const { code, message } = fieldsOf(fieldsOf(parseJson(await answer.text())).error);
    return code === -32001 || SAYS_NOT_FOUND.test(String(message));
  } catch {
    // An agent that does not answer in JSON has not answered with an unknown task.
    return false;
  }
}

const MISSING: ReadonlySet<ErrorCode | "answered"> = new Set<ErrorCode>([
  "METHOD_NOT_FOUND",
  "UNSUPPORTED_OPERATION",
  "PUSH_NOTIFICATION_NOT_SUPPORTED",
]);

async function probeStreaming(agent: RemoteAgent, id: string, notices: readonly Notice[]): Promise<Finding> {
  const read = async () => {
    for await (const _ of agent.subscribe(id)) return;
  };
  const outcome = await outcomeOf(read());
  // The client polls where an agent has no such method.
  const isMissing = MISSING.has(outcome) || notices.some(({ kind }) => kind === "fallback");
  if (isMissing) return isWrong("tasks cannot be subscribed to");
  return outcome === "TASK_NOT_FOUND"
    ? isSo("the operation to subscribe to a task is known")
    : isWrong(`a subscription is answered ${outcome}`);
}

async function probePush(agent: RemoteAgent, id: string): Promise<Finding> {
  const outcome = await outcomeOf(agent.getPushConfig(id, id));
  if (MISSING.has(outcome)) return isWrong(`webhooks cannot be registered: ${outcome}`);
  return outcome === "TASK_NOT_FOUND"
    ? isSo("the operation to read a webhook is known")
    : isWrong(`webhooks are answered ${outcome}`);
}

/** An address that leads nowhere (RFC 2606), so that nothing is ever delivered to it. */
const WEBHOOK = "https://webhook.invalid/dragoman-doctor";

/** Registers a webhook for a task, reads it and removes it. */
export async function probeWebhook(agent: RemoteAgent, taskId: string): Promise<Finding> {
  try {
    const { id = "" } = await agent.createPushConfig(taskId, { id: randomUUID(), taskId, url: WEBHOOK });
    const { url } = await agent.getPushConfig(taskId, id);
    await agent.deletePushConfig(taskId, id);
    return url === WEBHOOK
      ? isSo("a webhook was registered, read and removed")
      : isWrong("a webhook was registered, and another one read");
  } catch (error) {
    if (!ProtocolError.is(error)) return findingOf(error);
    const isMissing = MISSING.has(error.code) || error.code === "TASK_NOT_FOUND";
    if (isMissing) return isWrong(`no webhook can be registered for the task of an example: ${error.code}`);
    return notChecked(`a webhook at an address that leads nowhere is refused: ${error.code}`);
  }
}

async function probeExtendedCard(
  card: AgentCard,
  anonymous: RemoteAgent,
  authenticated: RemoteAgent | undefined,
): Promise<Finding> {
  try {
    const open = await outcomeOf(anonymous.extendedCard());
    if (open === "answered") return isWrong("it is shown without credentials");
    if (MISSING.has(open) || open === "EXTENDED_AGENT_CARD_NOT_CONFIGURED") return isWrong(`there is none: ${open}`);
    if (open !== "UNAUTHENTICATED" && open !== "PERMISSION_DENIED") return isWrong(`is answered ${open}`);
    if (authenticated === undefined) return isSo("is refused without credentials; what it contains was not checked");
    const { name, version } = await authenticated.extendedCard();
    if (name === card.name) return isSo(`is refused without credentials, and shows ${name} ${version} with them`);
    return isWrong(`belongs to another agent: ${name}`);
  } catch (error) {
    return findingOf(error);
  }
}
