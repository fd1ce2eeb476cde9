import { type Fields, fieldsOf } from "../../core/model/json.ts";
import { type CardContext, type Check, Failed, NotShown, notShown } from "./check.ts";
import { CheckContext } from "./check-context.ts";
import { CARD_CHECKS, CROSS_CHECKS, INTERFACE_CHECKS } from "./checks/index.ts";
import { ExchangeLog } from "./exchange-log.ts";
import { parseJson, textOf } from "./json.ts";
import { Observations } from "./observations.ts";
import { isAuthenticationError } from "./peers/errors.ts";
import { createHttpClient, type FullResponse, type HttpClient } from "./peers/http-client.ts";
import { type Peer, type PeerOptions, type Target, VERSION_HEADER } from "./peers/peer.ts";
import { createGrpcPeer, type MessageCodec } from "./peers/peer-grpc.ts";
import { createHttpPeer } from "./peers/peer-http.ts";
import { createJsonRpcPeer } from "./peers/peer-json-rpc.ts";
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
  /** Makes the requests over HTTP, with the caller's TLS settings. */
  readonly fetch?: typeof globalThis.fetch;
  /** TLS settings for gRPC, by address. */
  readonly grpcTls?: PeerOptions["grpcTls"];
  /** A client certificate is presented, which identifies the caller whatever the headers are. */
  readonly hasCertificate?: boolean;
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
  readonly #secrets: readonly string[];
  readonly #webhooks: WebhookReceiver;
  /** For the card. */
  readonly #log: ExchangeLog;
  readonly #client: HttpClient;
  readonly #signal: AbortSignal;
  readonly #contexts: CheckContext[] = [];
  readonly #untested: string[] = [];
  #stopped = false;

  constructor(options: ConformanceOptions) {
    const { headers = {}, otherHeaders, query = [], requestTimeoutMs = DEFAULT_REQUEST_TIMEOUT_MS } = options;
    this.#options = options;
    this.#signal = options.signal ?? new AbortController().signal;
    this.#webhooks = new WebhookReceiver(options.webhookHost, this.#signal);
    this.#secrets = [
      ...Object.values(headers),
      ...Object.values(otherHeaders ?? {}),
      ...query.map(([, value]) => value),
    ].flatMap((secret) => [secret, secret.replace(/^\S+ /, "")]);
    const limits = { timeoutMs: requestTimeoutMs, signal: this.#signal };
    const { cardUrl, fetch = globalThis.fetch, grpcTls } = options;
    this.#peerOptions = {
      headers,
      query,
      otherHeaders,
      credentialNames: options.credentialNames ?? Object.keys(headers),
      limits,
      insecure: options.insecure ?? false,
      cardUrl,
      fetch,
      grpcTls,
    };
    this.#log = new ExchangeLog(this.#secrets);
    this.#client = createHttpClient(this.#log, limits, fetch);
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
      if (contexts.length < 2) continue;
      const logs = contexts.map(({ peer }) => peer.log);
      groups.push(await this.#runChecks({ kind: "bindings", version }, CROSS_CHECKS, contexts, logs));
      await this.#cancelOpenTasks(contexts);
    }
    const all = groups.flatMap(({ requirements }) => requirements);
    const document = parseObject(this.#options.cardText);
    return {
      schemaVersion: REPORT_SCHEMA_VERSION,
      agent: {
        name: textOf(document.name) ?? "",
        version: textOf(document.version) ?? "",
        card: this.#log.redact(this.#options.cardUrl),
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

  get #cardIsFile(): boolean {
    return !/^https?:/.test(this.#options.cardUrl);
  }

  /** The card as served to clients of each version; a server may have one for all. */
  async #cards(): Promise<ReadonlyMap<Version | "any", string>> {
    const cards = new Map<Version | "any", string>([["any", this.#options.cardText]]);
    if (this.#cardIsFile) return cards;
    for (const version of VERSIONS) {
      const answer = await this.#fetchCard(version).catch(() => undefined);
      if (answer?.status === 200) cards.set(version, answer.text);
    }
    return cards;
  }

  async #fetchCard(version: Version): Promise<FullResponse> {
    if (this.#cardIsFile) notShown("the card came from a file");
    const headers = { Accept: "application/json", [VERSION_HEADER]: version };
    return this.#client.exchange({ method: "GET", url: new URL(this.#options.cardUrl), headers });
  }

  #cardGroup(version: Version, text: string): Promise<Group> {
    const context: CardContext = { version, text, fetch: () => this.#fetchCard(version) };
    const subject = { kind: "card", version, url: this.#log.redact(this.#options.cardUrl) } as const;
    return this.#runChecks(subject, CARD_CHECKS, context, [this.#log]);
  }

  /** Interfaces are tested in parallel, the checks of each in order. */
  async #interfaceGroups(
    targets: readonly Target[],
    cards: ReadonlyMap<Version | "any", string>,
  ): Promise<readonly Group[]> {
    for (const target of targets) {
      this.#open(target, parseObject(cards.get(target.version) ?? this.#options.cardText));
    }
    return Promise.all(this.#contexts.map((context) => this.#interfaceGroup(context)));
  }

  #open(target: Target, card: Fields): void {
    const { hasCertificate = false, headers = {}, otherHeaders, query = [] } = this.#options;
    const declared = readCapabilities(card, target.version);
    const observations = new Observations(target, new ExchangeLog(this.#secrets));
    const peerOptions = { ...this.#peerOptions, requiredExtensions: declared.requiredExtensions };
    const peer = this.#createPeer(target, peerOptions, observations);
    if (peer === undefined) {
      this.#untested.push(`${target.binding} ${target.version} at ${target.url}`);
      return;
    }
    const context = new CheckContext(peer, observations, {
      declared,
      webhooks: this.#webhooks,
      hasOtherCaller: otherHeaders !== undefined,
      hasCertificate,
      hasCredentials: hasCertificate || query.length > 0 || Object.keys(headers).length > 0,
      patienceMs: this.#options.patienceMs ?? DEFAULT_PATIENCE_MS,
    });
    this.#contexts.push(context);
  }

  /** Undefined for gRPC without a codec for its messages. */
  #createPeer(target: Target, options: PeerOptions, observations: Observations): Peer | undefined {
    if (target.binding === "JSONRPC") return createJsonRpcPeer(target, options, observations);
    if (target.binding === "HTTP+JSON") return createHttpPeer(target, options, observations);
    const codec = this.#options.codecs?.[target.version];
    return codec === undefined ? undefined : createGrpcPeer(target, options, observations, codec);
  }

  async #interfaceGroup(context: CheckContext): Promise<Group> {
    const { log, target } = context.peer;
    const { binding, tenant, url, version } = target;
    const place = { binding, version, url: log.redact(url), tenant };
    await this.#checkCredentials(context);
    const checks = INTERFACE_CHECKS.filter(({ bindings }) => bindings?.includes(binding) ?? true);
    const group = await this.#runChecks({ kind: "interface", ...place }, checks, context, [log]);
    await this.#cancelOpenTasks([context]);
    return group;
  }

  async #checkCredentials(context: CheckContext): Promise<void> {
    const answer = await context.call("GetTask", { id: "conformance-unknown-task" }).catch(() => undefined);
    if (answer?.ok === false && isAuthenticationError(answer.error, context.peer.binding))
      throw new CredentialsNeeded(answer.error.message);
  }

  async #cancelOpenTasks(contexts: readonly CheckContext[]): Promise<void> {
    for (const context of contexts) if (!this.#signal.aborted) await context.cancelOpenTasks();
  }

  /** Runs the checks that the options select, in order. */
  async #runChecks<Context>(
    subject: Subject,
    checks: readonly Check<Context>[],
    context: Context,
    logs: readonly ExchangeLog[],
  ): Promise<Group> {
    const { failFast, level, onProgress, only } = this.#options;
    const results = new Map<RequirementId, CheckResult[]>();
    for (const check of checks) {
      const ids = check.shows.filter((id) => isApplicable(id, subject.version, level));
      const isSelected = only === undefined || [check.name, ...ids].some((name) => only.includes(name));
      if (ids.length === 0 || !isSelected) continue;
      const result = await this.#runCheck(check.name, () => check.run(context), logs);
      for (const id of ids) results.set(id, [...(results.get(id) ?? []), result]);
      const isMust = ids.some((id) => REQUIREMENTS[id].level === "MUST");
      if (result.status === "failed" && failFast === true && isMust) this.#stopped = true;
      onProgress?.({ subject: subjectName(subject), result, requirements: ids });
    }
    const requirements = [...results].map(([id, found]): RequirementResult => {
      const { level: strength, sections, title } = REQUIREMENTS[id];
      const section = sections[subject.version] ?? "";
      return { id, section, level: strength, title, status: statusOf(found), checks: found };
    });
    return { subject, tally: tallyOf(requirements), requirements };
  }

  async #runCheck(name: string, run: () => Promise<void>, logs: readonly ExchangeLog[]): Promise<CheckResult> {
    for (const log of logs) log.clear();
    const begun = performance.now();
    try {
      if (this.#isOver) notShown("the run ended before");
      await run();
      return { name, status: "passed", durationMs: Math.round(performance.now() - begun) };
    } catch (error) {
      const durationMs = Math.round(performance.now() - begun);
      const cause = this.#signal.aborted ? new NotShown("the run ended before") : error;
      const reason = this.#log.redact(cause instanceof Error ? cause.message : String(cause));
      if (cause instanceof NotShown) return { name, status: "not-shown", durationMs, reason };
      const shown = cause instanceof Failed ? cause.evidence : undefined;
      const evidence = shown ?? logs.flatMap(({ exchanges }) => exchanges);
      return { name, status: "failed", durationMs, reason, evidence };
    }
  }
}

const parseObject = (text: string): Fields => fieldsOf(parseJson(text));
