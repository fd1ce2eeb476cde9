/** Compares an agent with its own card. */

import type { FetchedCard } from "../../../client/card/fetch-card.ts";
import type { ConnectOptions, Notice } from "../../../client/options.ts";
import type { AgentCard, AgentInterface } from "../../../model/card.ts";
import { ProtocolError } from "../../../model/errors.ts";
import { fieldsOf } from "../../../model/json.ts";
import {
  type AgentReport,
  type Claim,
  combine,
  type Finding,
  findingOf,
  isSo,
  isWrong,
  notChecked,
  statusOf,
} from "./claims.ts";
import { connectTo, type InterfaceFindings, type InterfaceProbe, probeInterface, probeWebhook } from "./interface.ts";
import { type ExampleSender, probeSkills } from "./skills.ts";

/** An agent to be probed. */
export interface ProbeTarget {
  readonly agent: string;
  readonly part?: AgentReport["part"];
  readonly source: string;
  /** An address at which the card is found; or the card itself, if a registry has only that. */
  readonly card: string | AgentCard;
  /** What the registry knows of it, to be compared. */
  readonly known?: { readonly name: string; readonly version: string } | undefined;
  readonly connect: ConnectOptions;
  /** Whether an interface may be called at all. */
  readonly mayCall?: (entry: AgentInterface, cardUrl: string | undefined) => boolean;
  /** Credentials for the agent, if there are any; before its card was read also those to read it with. */
  readonly login?: (cardUrl: string | undefined, card: AgentCard | undefined) => Promise<InterfaceProbe["login"]>;
}

export interface ProbeOptions {
  readonly timeoutMs: number;
  /** Sends the first example of every skill. */
  readonly send: boolean;
  readonly signal: AbortSignal;
}

/** Of one call, so that one that hangs leaves time for others. */
const MAX_CALL_MS = 10_000;

export async function probeAgent(target: ProbeTarget, options: ProbeOptions): Promise<AgentReport> {
  const { agent, card, part, source } = target;
  const about = { agent, part, source };
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(options.timeoutMs)]);
  const timeoutMs = Math.min(options.timeoutMs / 3, MAX_CALL_MS);
  const claims: Claim[] = [];
  let url = typeof card === "string" ? card : undefined;
  try {
    const bounded = { ...target, connect: { ...target.connect, signal, timeoutMs } };
    const found = await readCard(bounded);
    url = found.url ?? url;
    claims.push(...(await probeFound(bounded, found, { ...options, signal })));
  } catch (error) {
    claims.push({ claim: "card", ...findingOf(error) });
  }
  return { ...about, url, status: statusOf(claims), claims };
}

type FoundCard = Pick<FetchedCard, "card"> & Partial<FetchedCard>;

async function readCard({ card, connect, login }: ProbeTarget): Promise<FoundCard> {
  if (typeof card !== "string") return { card };
  const { fetchCard } = await import("../../../client/card/fetch-card.ts");
  const credentials = (await login?.(card, undefined))?.credentials;
  const retry = { attempts: 1, baseMs: 0, capMs: 0 };
  return fetchCard(card, { ...connect, retry, ...(credentials !== undefined && { credentials }) });
}

async function probeFound(target: ProbeTarget, found: FoundCard, options: ProbeOptions): Promise<readonly Claim[]> {
  const { card, url } = found;
  const probe: InterfaceProbe = {
    card,
    connect: { ...target.connect, ...(url !== undefined && { cardUrl: url }) },
    login: await target.login?.(url, card),
    loginHint: url === undefined ? "log in to it" : `dragoman auth login -a ${url}`,
  };
  const interfaces = await Promise.all(
    card.supportedInterfaces.map(async (entry): Promise<ProbedInterface> => {
      const label = `${entry.protocolBinding} ${entry.protocolVersion}`;
      const mayCall = target.mayCall?.(entry, url) ?? true;
      const findings = mayCall ? await probeInterface(entry, probe) : { interface: notChecked(NOT_CALLED) };
      return { entry, label, findings };
    }),
  );
  // Of an agent that answers in none of them, one is wrong at least.
  const answers = interfaces.some(({ findings }) => findings.interface.status === "ok");
  const isGuess = answers && !namesProtocol(found.raw);
  const claims = [
    { claim: "card", ...judgeCard(card, target.known) },
    ...interfaces.map(({ entry, findings, label }) => {
      const { detail, status } = findings.interface;
      const finding = isGuess && status === "wrong" ? notChecked(NOT_NAMED) : { status, detail };
      return { claim: `interface ${label}`, ...finding, detail: `${entry.url} ${finding.detail}` };
    }),
    ...CAPABILITIES.flatMap(([claim, member]) => {
      const some = interfaces.flatMap(({ findings, label }) => {
        const finding = findings[member];
        return finding === undefined ? [] : [[label, finding] as const];
      });
      return some.length === 0 ? [] : [{ claim, ...combine(some) }];
    }),
    { claim: "modes", ...judgeModes(card) },
  ];
  const examples = await probeExamples(probe, interfaces, options);
  const shown = claims.map((claim) => ({ ...claim, ...examples.shown.get(claim.claim) }));
  return [...shown, ...examples.claims];
}

/** Cards of the first versions do not say which protocol they are about; the client then tries all that it may be. */
function namesProtocol(raw: string | undefined): boolean {
  if (raw === undefined) return true;
  const { protocolVersion, supportedInterfaces } = fieldsOf(JSON.parse(raw));
  return protocolVersion !== undefined || supportedInterfaces !== undefined;
}

interface ProbedInterface {
  readonly entry: AgentInterface;
  readonly label: string;
  readonly findings: InterfaceFindings;
}

const NOT_NAMED = "does not answer in this protocol, which the card does not name";
const NOT_CALLED = "is not called: where gRPC leads cannot be checked; --allow-private-targets allows it";

const STREAMING = "streaming";
const PUSH = "push notifications";
const CAPABILITIES = [
  ["authentication", "authentication"],
  [STREAMING, "streaming"],
  [PUSH, "push"],
  ["extended card", "extendedCard"],
] as const satisfies readonly (readonly [string, keyof InterfaceFindings])[];

interface Examples {
  readonly claims: readonly Claim[];
  /** What the examples have shown of the capabilities, by claim. */
  readonly shown: ReadonlyMap<string, Finding>;
}

async function probeExamples(
  probe: InterfaceProbe,
  interfaces: readonly ProbedInterface[],
  { send, signal, timeoutMs }: ProbeOptions,
): Promise<Examples> {
  const { card, login } = probe;
  const shown = new Map<string, Finding>();
  const none = async (reason: string) => ({ claims: await probeSkills(card, undefined, reason), shown });
  if (!send) return none("its example is sent only with --send");
  const working = interfaces.find(({ findings }) => findings.interface.status === "ok");
  if (working === undefined) return none("no interface answers");
  // Without the signal: a task that is stopped by it has to be cancelled after that.
  const { signal: _, ...connect } = probe.connect;
  const notices: Notice[] = [];
  const agent = await connectTo(working.entry, { card, connect }, login, notices);
  const { pushNotifications, streaming } = card.capabilities;
  const onEnd: ExampleSender["onEnd"] = async ({ error, taskId }) => {
    if (streaming === true && !shown.has(STREAMING)) {
      const finding = judgeStream(error, notices);
      if (finding !== undefined) shown.set(STREAMING, finding);
    }
    if (pushNotifications === true && taskId !== undefined && !signal.aborted && !shown.has(PUSH)) {
      shown.set(PUSH, await probeWebhook(agent, taskId));
    }
  };
  return { claims: await probeSkills(card, { agent, signal, timeoutMs, onEnd }, ""), shown };
}

/** Undefined if the example has not shown anything: it was stopped, or the connection failed. */
function judgeStream(error: unknown, notices: readonly Notice[]): Finding | undefined {
  if (notices.some(({ kind }) => kind === "fallback")) return isWrong("an example could not be streamed");
  if (error === undefined) return isSo("an example was streamed");
  return ProtocolError.is(error) ? isWrong(`an example could not be streamed: ${error.code}`) : undefined;
}

function judgeCard(card: AgentCard, known: ProbeTarget["known"]): Finding {
  const shown = `${card.name} ${card.version}`;
  if (card.supportedInterfaces.length === 0) return isWrong(`${shown} declares no interface`);
  const ids = card.skills.map(({ id }) => id);
  const doubled = ids.find((id, index) => ids.indexOf(id) !== index);
  if (doubled !== undefined) return isWrong(`${shown} has two skills with the id ${doubled}`);
  if (known !== undefined && (known.name !== card.name || known.version !== card.version)) {
    return isWrong(`the registry has ${known.name} ${known.version}, the agent shows ${shown}`);
  }
  return isSo(shown);
}

const MEDIA_TYPE = /^[\w!#$&^.+*-]+\/[\w!#$&^.+*-]+(?:\s*;.*)?$/;

function judgeModes({ defaultInputModes, defaultOutputModes, skills }: AgentCard): Finding {
  const modes = new Set([
    ...defaultInputModes,
    ...defaultOutputModes,
    ...skills.flatMap(({ inputModes = [], outputModes = [] }) => [...inputModes, ...outputModes]),
  ]);
  const others = [...modes].filter((mode) => !MEDIA_TYPE.test(mode));
  if (others.length > 0) return isWrong(`not a media type: ${others.join(", ")}`);
  return modes.size === 0 ? notChecked("the card names none") : isSo([...modes].join(", "));
}
