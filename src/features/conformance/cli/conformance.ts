import { randomUUID } from "node:crypto";
import { access, constants, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { createTlsFetch, withoutCertificate } from "../../../core/auth/login/client-certificate.ts";
import { CommandError, CommandExit, EXIT, usageError } from "../../../core/cli/errors.ts";
import { readChoice, readDuration } from "../../../core/cli/flag-values.ts";
import type { Output } from "../../../core/cli/output.ts";
import { table } from "../../../core/cli/render/text.ts";
import { canonicalBinding } from "../../../core/cli/session/choose-interfaces.ts";
import {
  agentUrl,
  attachCredentials,
  type Credentials,
  isCredentialName,
  isLoopbackOrigin,
  untrustedOrigins,
} from "../../../core/cli/session/credentials.ts";
import { reportResult } from "../../../core/cli/session/report.ts";
import {
  allowedOrigins,
  type ClientFlags,
  findStoredLogin,
  resolveCard,
  type Session,
  withSession,
} from "../../../core/cli/session/session.ts";
import type { FetchedCard } from "../../../core/client/card/fetch-card.ts";
import { createCredentialGate } from "../../../core/client/transport/credential-origins.ts";
import { fromBytes, toBytes, type WireName } from "../../../core/dialects/a2a-v1/proto/schema.ts";
import {
  fromBytes as fromOldBytes,
  type ProtoName,
  toBytes as toOldBytes,
} from "../../../core/dialects/a2a-v03/proto/schema.ts";
import { hasErrorCode, ProtocolError } from "../../../core/model/errors.ts";
import { omitUndefined } from "../../../core/model/json.ts";
import {
  BINDINGS,
  type ConformanceOptions,
  CredentialsNeeded,
  LEVELS,
  type MessageCodec,
  type Progress,
  REQUIREMENT_IDS,
  REQUIREMENTS,
  type Report,
  renderJunit,
  renderMarkdown,
  renderText,
  runConformance,
  VERSIONS,
  type Version,
} from "../index.ts";

/** Encodes gRPC messages with the tables of the dialects. The suite passes only known names and valid values. */
export const MESSAGE_CODECS: Readonly<Record<Version, MessageCodec>> = {
  "1.0": {
    // The request to create a config is the config itself; the dialect has a separate table for it, with the tenant.
    encode: (message, value) =>
      toBytes(
        message === "TaskPushNotificationConfig" ? "CreateTaskPushNotificationConfigRequest" : (message as WireName),
        value as never,
      ),
    decode: (message, bytes) => fromBytes(message as WireName, bytes),
  },
  "0.3": {
    encode: (message, value) => toOldBytes(message as ProtoName, value as never),
    decode: (message, bytes) => fromOldBytes(message as ProtoName, bytes),
  },
};

export interface ConformanceFlags extends ClientFlags {
  readonly level?: string;
  readonly only?: readonly string[];
  readonly failFast?: boolean;
  readonly junit?: string;
  readonly report?: readonly string[];
  readonly requestTimeout?: string;
  readonly webhookHost?: string;
  readonly otherCaller?: readonly string[];
  readonly list?: boolean;
}

const DEFAULT_TIMEOUT_MS = 600_000;

export function conformance(output: Output, flags: ConformanceFlags): Promise<void> {
  return withSession(
    flags,
    output,
    async (session) => {
      if (flags.list === true) return printRequirements(session);
      const own = readFlags(flags, output);
      const files = await readReportFiles(flags);
      const { settings, stop } = session;
      stop.startTimer(settings.timeoutMs ?? DEFAULT_TIMEOUT_MS);
      const card = await resolveCard(session);
      const report = await runChecks({
        ...(await buildOptions(session, card)),
        ...own,
        onProgress: createProgressPrinter(session),
      });
      const written = await Promise.allSettled(files.map(({ file, render }) => replaceFile(file, render(report))));
      printReport(session, report);
      for (const result of written) if (result.status === "rejected") throw result.reason;
      const code = exitCode(session, report);
      if (code !== EXIT.done) throw new CommandExit(code);
    },
    // The timer is started above: this command has a default timeout, and reports what was found until it fires.
    { timeoutCoversAll: false },
  );
}

interface ReportFile {
  readonly file: string;
  readonly render: (report: Report) => string;
}

const REPORT_FORMATS: Readonly<Record<string, ReportFile["render"]>> = {
  junit: renderJunit,
  json: (report) => `${JSON.stringify(report, undefined, 2)}\n`,
  markdown: renderMarkdown,
};

/** The files are checked before the run: it may take minutes, and must not end in a report that cannot be written. */
async function readReportFiles({ junit, report = [] }: ConformanceFlags): Promise<readonly ReportFile[]> {
  const given = [...(junit === undefined ? [] : [`junit=${junit}`]), ...report];
  const files: ReportFile[] = [];
  for (const text of given) {
    const [, format = "", name = ""] = /^(\w+)=(.+)$/.exec(text) ?? [];
    const render = Object.hasOwn(REPORT_FORMATS, format) ? REPORT_FORMATS[format] : undefined;
    if (render === undefined) {
      throw usageError(`--report must look like junit=FILE, json=FILE or markdown=FILE, not "${text}".`);
    }
    const file = await realpath(name).catch(() => resolve(name));
    if (files.some((other) => other.file === file)) throw usageError(`Two reports cannot be written to ${name}.`);
    const problem = await findWriteProblem(file);
    if (problem !== undefined) throw usageError(`The report cannot be written to ${name}: ${problem}.`);
    files.push({ file, render });
  }
  return files;
}

async function findWriteProblem(file: string): Promise<string | undefined> {
  const found = await statOf(file);
  if (found?.isDirectory() === true) return "it is a folder";
  if (found?.isFile() === false) return undefined;
  const folder = dirname(file);
  try {
    await access(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return `${folder} ${hasErrorCode(error, "ENOENT") ? "does not exist" : "is not writable"}`;
  }
}

function statOf(file: string) {
  return stat(file).catch(() => undefined);
}

/** A reader of the file sees the old report or the whole new one. A pipe or a device is written to as it is. */
async function replaceFile(file: string, text: string): Promise<void> {
  if ((await statOf(file))?.isFile() === false) return writeFile(file, text);
  const draft = `${file}.${randomUUID().slice(0, 8)}.part`;
  try {
    await writeFile(draft, text, { flag: "wx" });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function runChecks(options: ConformanceOptions): Promise<Report> {
  try {
    return await runConformance(options);
  } catch (error) {
    if (error instanceof CredentialsNeeded) throw new ProtocolError("UNAUTHENTICATED", error.message, { cause: error });
    throw error;
  }
}

async function buildOptions(session: Session, found: FetchedCard): Promise<ConformanceOptions> {
  const { settings, stop } = session;
  const credentials = (await findLogin(session, found)) ?? attachCredentials(found.card, settings);
  const parameters = Object.fromEntries(settings.svcParam);
  return {
    cardUrl: found.url,
    cardText: found.raw,
    headers: { ...parameters, ...credentials.headers },
    query: credentials.query,
    // Other service parameters are sent in anonymous requests, too.
    credentialNames: [...Object.keys(parameters).filter(isCredentialName), ...Object.keys(credentials.headers)],
    bindings: settings.transport.map((text) => readChoice("--transport", canonicalBinding(text), BINDINGS)),
    ...(settings.transport.length === 0 ? { bindings: BINDINGS } : {}),
    ...(settings.a2aVersion === undefined
      ? {}
      : { versions: [readChoice("--a2a-version", settings.a2aVersion, VERSIONS)] }),
    insecure: settings.insecure,
    ...createTlsSettings(session, found.url),
    codecs: MESSAGE_CODECS,
    signal: stop.signal,
    ...(isLoopbackOrigin(found.url) ? { webhookHost: "127.0.0.1" } : {}),
  };
}

/** As for other commands, the certificate is presented to the card's origin and to those that the user names. */
function createTlsSettings({ settings, tls }: Session, cardUrl: string): Partial<ConformanceOptions> {
  if (tls === undefined) return {};
  const mayPresent = createCredentialGate({ cardUrl, credentialOrigins: settings.credentialOrigin });
  return {
    fetch: createTlsFetch(globalThis.fetch, tls, (url) => mayPresent({ url })),
    grpcTls: (address) => (mayPresent({ url: "", address }) ? tls : withoutCertificate(tls)),
    hasCertificate: tls.cert !== undefined,
  };
}

/** The stored credentials for the agent, if all interfaces of the card are on origins that the login covers. */
async function findLogin(
  session: Session,
  { card, url }: FetchedCard,
): Promise<Omit<Credentials, "notes"> | undefined> {
  const stored = await findStoredLogin(session, agentUrl(url, card), card);
  if (stored === undefined) return undefined;
  if (untrustedOrigins(card, url, allowedOrigins(session.settings, stored)).length > 0) {
    session.output.warn("The card names other origins than its own; the login is not used.");
    return undefined;
  }
  session.usesLogin = true;
  const query = (await stored.provider.queryFor?.(url)) ?? {};
  return { headers: { ...(await stored.provider.headersFor(url)) }, query: Object.entries(query) };
}

function readFlags(flags: ConformanceFlags, output: Output): Partial<ConformanceOptions> {
  const { failFast, level, only, otherCaller, requestTimeout, webhookHost } = flags;
  return {
    ...omitUndefined({ only, failFast, webhookHost }),
    ...(level === undefined ? {} : { level: readChoice("--level", level.toUpperCase(), LEVELS) }),
    ...(requestTimeout === undefined ? {} : { requestTimeoutMs: readDuration("--request-timeout", requestTimeout) }),
    ...(otherCaller === undefined ? {} : { otherHeaders: toHeaders(otherCaller, output) }),
  };
}

function toHeaders(pairs: readonly string[], output: Output): Readonly<Record<string, string>> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const [, name, value] = /^([\w-]+):\s*(.+)$/.exec(pair) ?? [];
      if (name === undefined || value === undefined) throw usageError("--other-caller must look like name:value.");
      output.addSecret(value);
      return [name, value];
    }),
  );
}

/** Prints what is being tested and failures as they occur; with --verbose, every check. */
function createProgressPrinter({ output, settings }: Session): (progress: Progress) => void {
  const begun = new Set<string>();
  return ({ requirements, result, subject }) => {
    if (!begun.has(subject)) output.info(`Testing ${subject}`, "dim");
    begun.add(subject);
    const { name, reason, status } = result;
    if (status === "failed") {
      output.error(`${requirements.join(", ")} (${name}): ${reason ?? ""}`, "Failed");
    } else if (settings.verbose) output.info(`${status} ${name} in ${subject}`, "dim");
  };
}

function printReport(session: Session, report: Report): void {
  if (!report.groups.some(({ subject }) => subject.kind === "interface")) {
    const offered = report.untested.length === 0 ? "" : ` It offers ${report.untested.join(", ")}.`;
    throw new CommandError("DRAGOMAN_ERR_NO_INTERFACE", `The card declares no interface that can be tested.${offered}`);
  }
  reportResult(session, report, () => renderText(report, { verbose: session.settings.verbose }));
}

function exitCode({ stop }: Session, report: Report) {
  if (!report.conformant) return EXIT.failure;
  if (stop.reason === "interrupted") return EXIT.interrupted;
  return stop.reason === "timeout" ? EXIT.timeout : EXIT.done;
}

function printRequirements(session: Session): void {
  const requirements = REQUIREMENT_IDS.map((id) => {
    const { level, sections, title } = REQUIREMENTS[id];
    return { id, level, sections, title };
  });
  const toRow = ({ id, level, sections, title }: (typeof requirements)[number]) => {
    const places = VERSIONS.flatMap((version) => (sections[version] ? [`${version} §${sections[version]}`] : []));
    return [id, level, places.join(", "), title];
  };
  reportResult(session, { schemaVersion: 1, requirements }, () => table(requirements.map(toRow)));
}
