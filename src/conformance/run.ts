import { type CardContext, type Check, Failed, NotShown } from "./check.ts";
import { CheckContext } from "./check-context.ts";
import { CARD_CHECKS, CROSS_CHECKS, INTERFACE_CHECKS } from "./checks/index.ts";
import { ExchangeLog } from "./exchange-log.ts";
import { type Fields, fieldsOf, parseJson, textOf } from "./json.ts";
import { Observations } from "./observations.ts";
import { createPeer } from "./peers/create-peer.ts";
import { isAuthenticationError } from "./peers/errors.ts";
import { HttpClient, mergeHeaders } from "./peers/http-client.ts";
import { type PeerOptions, type Target, VERSION_HEADER } from "./peers/peer.ts";
import type { MessageCodec } from "./peers/peer-grpc.ts";
import { findTargets, readCapabilities } from "./read-card.ts";
import {
  type CheckResult,
  type Group,
  REPORT_SCHEMA_VERSION,
  type Report,
  type RequirementResult,
  type Subject,
  statusOf,
  subjectName,
  tallyOf,
} from "./report.ts";
import {
  type Binding,
  isApplicable,
  type Level,
  REQUIREMENTS,
  type RequirementId,
  VERSIONS,
  type Version,
} from "./requirements.ts";
import { WebhookReceiver } from "./webhook-receiver.ts";

export interface ConformanceOptions {
  /** URL of the card; a `file:` URL if it was read from a file. */
  readonly cardUrl: string;
  readonly cardText: string;
  /** Headers of every request, such as credentials. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: readonly (readonly [string, string])[];
  /** Credentials of a second caller, sent instead of the first one's. */
  readonly otherHeaders?: Readonly<Record<string, string>>;
  /** Names of the headers that identify the caller; default: all of `headers`. */
  readonly credentialNames?: readonly string[];
  readonly bindings?: readonly Binding[];
  readonly versions?: readonly Version[];
  /** Lowest level of the requirements to test. */
  readonly level?: Level;
  /** Only these requirements or checks, by id or name. */
  readonly only?: readonly string[];
  readonly failFast?: boolean;
  readonly insecure?: boolean;
  readonly requestTimeoutMs?: number;
  /** How long a task may take to reach the state that a check waits for. */
  readonly patienceMs?: number;
  /** Host under which the agent can reach this machine, for push notifications. */
  readonly webhookHost?: string;
  /** Codecs for gRPC messages, by version. Interfaces without one are not tested. */
  readonly codecs?: Readonly<Partial<Record<Version, MessageCodec>>>;
  /** Aborts the run; checks that have not run by then are not shown. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly subject: string;
  readonly result: CheckResult;
  readonly requirements: readonly RequirementId[];
}

const DEFAULT_REQUEST_TIMEOUT_MS = 10_000;
const DEFAULT_PATIENCE_MS = 15_000;

/** The agent rejected the first request as unauthenticated: without credentials nothing can be shown. */
export class CredentialsNeeded extends Error {
  override readonly name = "CredentialsNeeded";
}

export async function runConformance(options: ConformanceOptions): Promise<Report> {
  const run = new Run(options);
  try {
    return await run.report();
  } finally {
    await run.close();
  }
}

class Run {
  readonly #options: ConformanceOptions;
  readonly #peerOptions: Omit<PeerOptions, "requiredExtensions">;
  readonly #webhooks: WebhookReceiver;
  readonly #client: HttpClient;
  readonly #signal: AbortSignal;
  readonly #contexts: CheckContext[] = [];
  readonly #untested: string[] = [];
  #stopped = false;

  constructor(options: ConformanceOptions) {
    const { headers = {}, otherHeaders, query = [] } = options;
    this.#options = options;
    this.#signal = options.signal ?? new AbortController().signal;
    this.#webhooks = new WebhookReceiver(options.webhookHost, this.#signal);
    const secrets = [
      ...Object.values(headers),
      ...Object.values(otherHeaders ?? {}),
      ...query.map(([, value]) => value),
    ];
    this.#peerOptions = {
      headers,
      query,
      otherHeaders,
      credentialNames: options.credentialNames ?? Object.keys(headers),
      requestTimeoutMs: options.requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS,
      signal: this.#signal,
      insecure: options.insecure ?? false,
      secrets: secrets.flatMap((secret) => [secret, secret.replace(/^\S+ /, "")]),
    };
    this.#client = new HttpClient(
      new ExchangeLog(this.#peerOptions.secrets),
      this.#peerOptions.requestTimeoutMs,
      this.#signal,
    );
  }

  async report(): Promise<Report> {
    const startedAt = new Date();
    const cards = await this.#cards();
    const { targets, unsupported } = findTargets([...cards.values()].map(parseObject), this.#options.cardUrl);
    const wanted = targets.filter((target) => this.#wants(target));
    const groups: Group[] = [];
    for (const version of VERSIONS) {
      if (this.#checksCard(version, wanted))
        groups.push(await this.#cardGroup(version, cards.get(version) ?? this.#options.cardText));
    }
    groups.push(...(await this.#interfaceGroups(wanted, cards)));
    for (const version of VERSIONS) {
      const contexts = this.#contexts.filter((context) => context.version === version);
      if (contexts.length > 1) groups.push(await this.#crossGroup(version, contexts));
    }
    const all = groups.flatMap(({ requirements }) => requirements);
    const document = parseObject(this.#options.cardText);
    return {
      schemaVersion: REPORT_SCHEMA_VERSION,
      agent: {
        name: textOf(document.name) ?? "",
        version: textOf(document.version) ?? "",
        card: this.#client.log.redact(this.#options.cardUrl),
      },
      startedAt: startedAt.toISOString(),
      durationMs: Date.now() - startedAt.getTime(),
      complete: !this.#isOver,
      conformant: !all.some(({ level, status }) => level === "MUST" && status === "failed"),
      tally: tallyOf(all),
      groups,
      untested: [...unsupported, ...this.#untested],
    };
  }

  async close(): Promise<void> {
    for (const context of this.#contexts) context.peer.close();
    this.#client.close();
    await this.#webhooks.close();
  }

  get #isOver(): boolean {
    return this.#stopped || this.#signal.aborted;
  }

  #wants({ binding, version }: Target): boolean {
    const { bindings, versions } = this.#options;
    return (bindings?.includes(binding) ?? true) && (versions?.includes(version) ?? true);
  }

  /** A card is checked for the versions of its interfaces; one without a usable interface, for the newest version. */
  #checksCard(version: Version, wanted: readonly Target[]): boolean {
    if (this.#options.versions?.includes(version) === true) return true;
    return wanted.length === 0 ? version === "1.0" : wanted.some((target) => target.version === version);
  }

  /** The card as served to clients of each version; a server may have one for all. */
  async #cards(): Promise<ReadonlyMap<Version | "any", string>> {
    const cards = new Map<Version | "any", string>([["any", this.#options.cardText]]);
    if (!/^https?:/.test(this.#options.cardUrl)) return cards;
    for (const version of VERSIONS) {
      const answer = await this.#fetchCard(version).catch(() => undefined);
      if (answer?.status === 200) cards.set(version, answer.text);
    }
    return cards;
  }

  #fetchCard(version: Version) {
    const url = new URL(this.#options.cardUrl);
    const own = { Accept: "application/json", [VERSION_HEADER]: version };
    return this.#client.exchange({ method: "GET", url, headers: mergeHeaders(own) });
  }

  async #cardGroup(version: Version, text: string): Promise<Group> {
    const { cardUrl } = this.#options;
    const isFile = !/^https?:/.test(cardUrl);
    const context: CardContext = {
      version,
      text,
      log: this.#client.log,
      fetch: async () => (isFile ? undefined : this.#fetchCard(version)),
    };
    const subject: Subject = { kind: "card", version, url: this.#client.log.redact(cardUrl) };
    const results = new Results(subject, this.#options.level);
    for (const check of CARD_CHECKS) {
      if (results.isAskedFor(check, this.#options.only))
        await this.#try(check, results, [context.log], () => check.run(context));
    }
    return results.group();
  }

  /** Interfaces are tested in parallel, the checks of each in order. */
  async #interfaceGroups(
    targets: readonly Target[],
    cards: ReadonlyMap<Version | "any", string>,
  ): Promise<readonly Group[]> {
    const contexts: CheckContext[] = [];
    for (const target of targets) {
      const context = await this.#open(target, parseObject(cards.get(target.version) ?? this.#options.cardText));
      if (context !== undefined) contexts.push(context);
    }
    return Promise.all(contexts.map((context) => this.#interfaceGroup(context)));
  }

  async #open(target: Target, card: Fields): Promise<CheckContext | undefined> {
    const { codecs, headers = {}, otherHeaders, patienceMs, query = [] } = this.#options;
    const declared = readCapabilities(card, target.version);
    const seen = new Observations(target);
    const peerOptions = { ...this.#peerOptions, requiredExtensions: declared.requiredExtensions };
    const peer = await createPeer(target, peerOptions, seen, codecs?.[target.version]);
    if (peer === undefined) {
      this.#untested.push(`${target.binding} ${target.version} at ${target.url}`);
      return undefined;
    }
    const context = new CheckContext(peer, seen, {
      declared,
      webhooks: this.#webhooks,
      hasOtherCaller: otherHeaders !== undefined,
      hasCredentials: query.length > 0 || Object.keys(headers).length > 0,
      patienceMs: patienceMs ?? DEFAULT_PATIENCE_MS,
    });
    this.#contexts.push(context);
    return context;
  }

  async #interfaceGroup(context: CheckContext): Promise<Group> {
    const { binding, tenant, url, version } = context.peer.target;
    const { log } = context.peer;
    const place = { binding, version, url: log.redact(url), ...(tenant === undefined ? {} : { tenant }) };
    const results = new Results({ kind: "interface", ...place }, this.#options.level);
    const fits = (check: Check) => check.bindings?.includes(binding) ?? true;
    await this.#checkCredentials(context);
    for (const check of INTERFACE_CHECKS) {
      if (!fits(check) || !results.isAskedFor(check, this.#options.only)) continue;
      await this.#try(check, results, [log], () => check.run(context));
    }
    if (!this.#signal.aborted) await context.cancelOpenTasks();
    return results.group();
  }

  async #checkCredentials(context: CheckContext): Promise<void> {
    const answer = await context.call("GetTask", { id: "conformance-unknown-task" }).catch(() => undefined);
    if (answer?.ok === false && isAuthenticationError(answer.error, context.peer.binding))
      throw new CredentialsNeeded(answer.error.message);
  }

  async #crossGroup(version: Version, contexts: readonly CheckContext[]): Promise<Group> {
    const results = new Results({ kind: "bindings", version }, this.#options.level);
    const logs = contexts.map(({ peer }) => peer.log);
    for (const check of CROSS_CHECKS) {
      if (results.isAskedFor(check, this.#options.only))
        await this.#try(check, results, logs, () => check.run(contexts));
    }
    for (const context of contexts) if (!this.#signal.aborted) await context.cancelOpenTasks();
    return results.group();
  }

  async #try(check: Check, results: Results, logs: readonly ExchangeLog[], body: () => Promise<void>): Promise<void> {
    for (const log of logs) log.clear();
    const begun = performance.now();
    const ended = this.#isOver ? new NotShown("the run ended before") : await outcomeOf(body);
    const durationMs = Math.round(performance.now() - begun);
    const late = ended !== undefined && this.#signal.aborted ? new NotShown("the run ended before") : ended;
    const result = toResult(check.name, late, durationMs, logs);
    results.add(check, result);
    if (result.status === "failed" && this.#options.failFast === true && results.isMust(check)) this.#stopped = true;
    this.#options.onProgress?.({
      subject: subjectName(results.subject),
      result,
      requirements: results.applicable(check),
    });
  }
}

async function outcomeOf(body: () => Promise<void>): Promise<unknown> {
  try {
    await body();
    return undefined;
  } catch (error) {
    return error;
  }
}

function toResult(name: string, ended: unknown, durationMs: number, logs: readonly ExchangeLog[]): CheckResult {
  if (ended === undefined) return { name, status: "passed", durationMs };
  const message = ended instanceof Error ? ended.message : String(ended);
  const reason = logs[0]?.redact(message) ?? message;
  if (ended instanceof NotShown) return { name, status: "not-shown", durationMs, reason };
  const seen = ended instanceof Failed ? ended.evidence : undefined;
  return { name, status: "failed", durationMs, reason, evidence: seen ?? logs.flatMap(({ exchanges }) => exchanges) };
}

/** Results of one subject, by requirement. */
class Results {
  readonly subject: Subject;
  readonly #level: Level;
  readonly #checks = new Map<RequirementId, CheckResult[]>();

  constructor(subject: Subject, level: Level = "MAY") {
    this.subject = subject;
    this.#level = level;
  }

  applicable(check: Check): readonly RequirementId[] {
    return check.shows.filter((id) => isApplicable(id, this.subject.version, this.#level));
  }

  isAskedFor(check: Check, only: readonly string[] | undefined): boolean {
    const ids: readonly string[] = this.applicable(check);
    return ids.length > 0 && (only === undefined || only.includes(check.name) || ids.some((id) => only.includes(id)));
  }

  isMust(check: Check): boolean {
    return this.applicable(check).some((id) => REQUIREMENTS[id].level === "MUST");
  }

  add(check: Check, result: CheckResult): void {
    for (const id of this.applicable(check)) this.#checks.set(id, [...(this.#checks.get(id) ?? []), result]);
  }

  group(): Group {
    const requirements = [...this.#checks].map(([id, checks]): RequirementResult => {
      const { level, sections, title } = REQUIREMENTS[id];
      return { id, section: sections[this.subject.version] ?? "", level, title, status: statusOf(checks), checks };
    });
    return { subject: this.subject, tally: tallyOf(requirements), requirements };
  }
}

const parseObject = (text: string): Fields => fieldsOf(parseJson(text));
