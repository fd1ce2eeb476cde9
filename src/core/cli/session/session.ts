import { type ClientTlsOptions, withoutCertificate } from "../../auth/login/client-certificate.ts";
import type { FetchedCard } from "../../client/card/fetch-card.ts";
import { describeVerification } from "../../client/card/verify-card.ts";
import { ConnectionError } from "../../client/errors.ts";
import type { ChosenInterface, Notice, RemoteAgent } from "../../client/options.ts";
import { createCredentialGate } from "../../client/transport/credential-origins.ts";
import { parseGrpcAddress } from "../../client/transport/grpc-channels.ts";
import type { SessionParts } from "../../extension/contract.ts";
import { installedExtensions } from "../../extension/installed.ts";
import type { AgentCard } from "../../model/card.ts";
import { canParseUrl, parseUrl } from "../../model/url.ts";
import { isLoopback } from "../../wire/loopback.ts";
import { CommandError, usageError } from "../errors.ts";
import type { Output } from "../output.ts";
import { quoteForShell } from "../render/text.ts";
import type { FlagValues } from "../settings/definitions.ts";
import { findSettingFiles } from "../settings/files.ts";
import { readSettings, type Settings } from "../settings/read.ts";
import { canonicalBinding, chooseInterfaces, offersBinding } from "./choose-interfaces.ts";
import {
  createExchangeLog,
  declaredExtensions,
  isExtensionsHeader,
  readTlsOptions,
  readTrustOptions,
  undeclaredExtensions,
} from "./connect-options.ts";
import {
  agentUrl,
  agentUrlOfTarget,
  attachCredentials,
  type Credentials,
  fetchWithQuery,
  hasCredentials,
  loadStoredLogin,
  type StoredLogin,
} from "./credentials.ts";
import { explainError } from "./explain-error.ts";
import { createProgress, type FollowedTask, type Progress } from "./progress.ts";
import { StopSignal } from "./stop-signal.ts";

/** The flags common to all agent-facing commands. */
export type ClientFlags = FlagValues & { readonly stream?: boolean; readonly config?: string };

/** The state of one agent-facing command while it runs. */
export interface Session {
  /** Changed when the agent was looked up in a registry. */
  settings: Settings;
  readonly output: Output;
  readonly stop: StopSignal;
  readonly progress: Progress;
  /** The card in use, once resolved; hints are derived from it. */
  card: AgentCard | undefined;
  cardUrl: string | undefined;
  usesLogin: boolean;
  tls: ClientTlsOptions | undefined;
  /** As far as is known, tasks can be read after their stream broke. */
  tasksCanBeRead: boolean;
  /** The task being followed, so that an interrupted command can print how to continue. */
  followedTask: FollowedTask | undefined;
  /** The agent, if its address is not a URL. */
  addressed: RemoteAgent | undefined;
}

export async function withSession<T>(
  flags: ClientFlags,
  output: Output,
  body: (session: Session) => Promise<T>,
  options: { readonly timeoutCoversAll?: boolean } = {},
): Promise<T> {
  const files = findSettingFiles(flags.config);
  const settings = readSettings(flags, process.env, files);
  registerSecrets(settings, output);
  for (const file of files) {
    if (file.exposed)
      output.warn(`${file.path} holds credentials and others may read it. Run: chmod 600 ${quoteForShell(file.path)}`);
  }
  const session: Session = {
    settings,
    output,
    stop: new StopSignal(),
    progress: createProgress(output),
    card: undefined,
    cardUrl: undefined,
    usesLogin: false,
    tls: undefined,
    tasksCanBeRead: true,
    followedTask: undefined,
    addressed: undefined,
  };
  if (options.timeoutCoversAll !== false) session.stop.startTimer(settings.timeoutMs);
  session.stop.listenForInterrupt();
  try {
    return await body(session);
  } catch (error) {
    throw explainError(error, session);
  } finally {
    session.progress.stop();
    session.stop.dispose();
    await session.addressed?.close();
  }
}

/** Shorter service parameters are not credentials, and redacting them everywhere would garble messages. */
const MIN_SECRET_LENGTH = 6;

function registerSecrets({ apiKey, authCode, bearer, keys, svcParam }: Settings, output: Output): void {
  for (const secret of [bearer, apiKey, authCode, keys?.sk]) if (secret !== undefined) output.addSecret(secret);
  for (const [, value] of svcParam) if (value.length >= MIN_SECRET_LENGTH) output.addSecret(value);
}

/** The card is fetched without credentials unless requested: at this point, nothing shows that they are required. */
export async function resolveCard(session: Session): Promise<FetchedCard> {
  const { output, settings, stop } = session;
  if (settings.agentCard === undefined) {
    throw usageError(
      "The agent is missing.",
      "Set -a/--agent-card or A2ACLI_AGENT_CARD to a host, a URL, a file, a name or skill:<id> of a registry, or a2a-lite:<network>/<room>#<participant>.",
    );
  }
  if (settings.insecure) disableCertificateChecks(session);
  const parts = await sessionParts();
  session.addressed ??= await openAddress(session, settings.agentCard, parts);
  if (session.addressed !== undefined) {
    const { card } = session.addressed;
    session.card = card;
    session.cardUrl = settings.agentCard;
    return { card, url: settings.agentCard, raw: JSON.stringify(card) };
  }
  const tls = await readTlsOptions(settings);
  session.tls = tls && withoutCertificate(tls);
  const { fetchCard } = await import("../../client/card/fetch-card.ts");
  const read = async (target: string) => {
    session.tls = tls && (mayPresentCertificate(settings, target) ? tls : withoutCertificate(tls));
    const stored = await findStoredLogin(session, agentUrlOfTarget(target), undefined);
    return fetchCard(target, {
      signal: stop.signal,
      retry: { attempts: 2, baseMs: 200, capMs: 1000 },
      credentials: stored?.provider,
      version: settings.a2aVersion,
      dialect: settings.dialect,
      tls: session.tls,
      onExchange: settings.debug ? createExchangeLog(output) : undefined,
      ...(await readTrustOptions(settings)),
    });
  };
  try {
    const readNamed = parts.find(({ readNamedCard }) => readNamedCard !== undefined)?.readNamedCard;
    const found = await (readNamed?.(session, settings.agentCard, read) ?? read(settings.agentCard));
    const card = resolveInterfaceUrls(found.card, found.url);
    session.card = card;
    session.cardUrl = found.url;
    const { verification } = found;
    if (verification !== undefined && verification.status !== "verified")
      output.warn(describeVerification(verification));
    return { ...found, card };
  } catch (error) {
    throw toCardError(error);
  }
}

/** Not to an agent that a registry chose, unless it is where the user expects it. */
function mayPresentCertificate({ agentCard, credentialOrigin, registry }: Settings, target: string): boolean {
  if (target === agentCard) return true;
  const origin = originOf(target);
  return credentialOrigin.includes(origin) || (registry !== undefined && originOf(registry) === origin);
}

/** The client reports one error for all unusable cards; the exit code depends on whether there was a card at all. */
function toCardError(error: unknown): unknown {
  if (!ConnectionError.is(error) || error.code !== "bad-card" || !isMissing(error)) return error;
  return new CommandError(
    "A2ACLI_ERR_CARD_NOT_FOUND",
    error.message,
    "Set -a/--agent-card to a host, a base URL, the full URL of the card, or a file.",
    { cause: error },
  );
}

function isMissing(error: ConnectionError): boolean {
  const fileCause = error.cause instanceof Error && "syscall" in error.cause;
  return fileCause || / answered \d{3}\b| does not name an agent/.test(error.message);
}

/** Resolves relative URLs, which some cards contain, against the card's URL. gRPC addresses only look relative. */
function resolveInterfaceUrls(card: AgentCard, base: string): AgentCard {
  const supportedInterfaces = card.supportedInterfaces.map((entry) => {
    const { protocolBinding, url } = entry;
    if (canonicalBinding(protocolBinding) === "GRPC" || canParseUrl(url) || !canParseUrl(url, base)) return entry;
    return { ...entry, url: new URL(url, base).href };
  });
  return { ...card, supportedInterfaces };
}

/** What extensions know of names and addresses. */
async function sessionParts(): Promise<readonly SessionParts[]> {
  const loaded = await Promise.all(installedExtensions().map(({ session }) => session?.()));
  return loaded.filter((parts) => parts !== undefined);
}

async function openAddress(
  session: Session,
  address: string,
  parts: readonly SessionParts[],
): Promise<RemoteAgent | undefined> {
  for (const part of parts) {
    const opened = part.openAddress?.(session, address);
    if (opened !== undefined) return opened;
  }
  return undefined;
}

export async function openAgent(session: Session): Promise<RemoteAgent> {
  const { card } = await resolveCard(session);
  if (session.addressed !== undefined) return session.addressed;
  const agent = await connectTo(session, card);
  const missing = undeclaredExtensions(card, session.settings);
  if (missing !== undefined) session.output.warn(`The agent requires ${missing}`);
  return agent;
}

export async function connectTo(
  session: Session,
  card: AgentCard,
  settings: Settings = session.settings,
): Promise<RemoteAgent> {
  const { output, stop } = session;
  const debug = (line: string): void => {
    if (settings.debug) output.info(line, "dim");
  };
  const interfaces = chooseInterfaces(card, settings);
  if (settings.transport.length > 0 && !offersBinding(settings.transport, interfaces)) {
    output.info(`The agent does not offer ${settings.transport.join(" or ")}; using what it prefers.`);
  }
  const credentials = attachCredentials(card, settings);
  for (const note of credentials.notes) output.info(note);
  const stored = await findStoredLogin(session, agentUrl(session.cardUrl, card), card);
  session.usesLogin = stored !== undefined;
  if (stored !== undefined) debug(`Using the login for ${stored.schemes.join(", ")}`);
  const { connect } = await import("../../client/connect.ts");
  const { abilitiesOf } = await import("../../client/dialects.ts");
  const agent = await connect(
    { ...card, supportedInterfaces: interfaces },
    {
      headers: {
        ...Object.fromEntries(settings.svcParam.filter((parameter) => !isExtensionsHeader(parameter))),
        ...credentials.headers,
      },
      extensions: declaredExtensions(card, settings),
      signal: stop.signal,
      onNotice: createNoticeHandler(session),
      credentialOrigins: allowedOrigins(settings, stored),
      version: settings.a2aVersion,
      dialect: settings.dialect,
      tls: session.tls,
      keys: settings.keys,
      authCode: settings.authCode,
      cardUrl: session.cardUrl,
      credentials: stored?.provider,
      fetch: createQueryFetch(session, interfaces, credentials.query),
      onExchange: settings.debug ? createExchangeLog(output) : undefined,
    },
  );
  session.tasksCanBeRead = abilitiesOf(agent.interface.dialect)?.operations.get !== false;
  warnOfExposedCredentials(session, agent.interface);
  const { binding, dialect, tenant, url } = agent.interface;
  debug(`Using ${dialect} over ${binding} with ${url}${tenant === undefined ? "" : `, tenant ${tenant}`}`);
  return agent;
}

const CREDENTIAL_ORIGIN_HINT = "Name that origin with --credential-origin";

/** Losses are frequent and rarely matter: one line reports that there are some, --debug shows each. */
function createNoticeHandler({ output, progress, settings }: Session): (notice: Notice) => void {
  let lossesReported = false;
  return ({ kind, loss, message }) => {
    if (kind === "credentials")
      output.warn(message.replace("Name that origin in credentialOrigins", CREDENTIAL_ORIGIN_HINT));
    else if (kind === "reconnect") progress.retry(message);
    else if (loss === undefined) output.info(message);
    else if (settings.debug) output.info(`Loss: ${loss.path} ${loss.kind}: ${loss.reason}`, "dim");
    else if (!lossesReported && loss.kind !== "filled") {
      lossesReported = true;
      output.info("The agent's dialect could not express everything; --debug shows what was lost.");
    }
  };
}

/** A credential in the settings takes precedence over a login. */
export function findStoredLogin(
  { output, settings }: Session,
  agent: string | undefined,
  card: AgentCard | undefined,
): Promise<StoredLogin | undefined> {
  const isGiven = (settings.bearer ?? settings.apiKey ?? settings.keys) !== undefined;
  return isGiven ? Promise.resolve(undefined) : loadStoredLogin(output, agent, card);
}

/** Origins besides the card's to which credentials may be sent: from the settings, and from the login. */
export function allowedOrigins({ credentialOrigin }: Settings, stored: StoredLogin | undefined): readonly string[] {
  return [...credentialOrigin, ...(stored?.origins ?? [])];
}

/** A key in the query is sent to the same origins as one in a header. */
function createQueryFetch(
  { cardUrl, settings }: Session,
  interfaces: AgentCard["supportedInterfaces"],
  query: Credentials["query"],
): typeof globalThis.fetch | undefined {
  if (query.length === 0) return undefined;
  const isTrusted = createCredentialGate({ cardUrl, credentialOrigins: settings.credentialOrigin });
  const trusted = interfaces.filter(({ url }) => isTrusted({ url })).map(({ url }) => originOf(url));
  const origins = new Set(trusted.filter((origin) => /^https?:/.test(origin)));
  let fetch = globalThis.fetch;
  for (const origin of origins) fetch = fetchWithQuery(query, origin, fetch);
  return fetch;
}

function originOf(url: string): string {
  return parseUrl(url)?.origin ?? "";
}

function disableCertificateChecks(session: Session): void {
  // Node's fetch has no per-request option; the process makes no other requests, so the process-wide one is as narrow.
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  session.output.warn(
    "--insecure: TLS certificates are not verified. Anyone on the network path can impersonate the agent.",
  );
}

function warnOfExposedCredentials(session: Session, chosen: ChosenInterface): void {
  const { cardUrl, output, settings, usesLogin } = session;
  const place = endpointOf(chosen, cardUrl);
  if (!(usesLogin || hasCredentials(settings)) || place === undefined) return;
  if (settings.insecure) {
    output.warn("SECURITY: credentials are sent over a connection whose certificate is not verified (--insecure).");
  } else if (!place.secure && !isLoopback(place.hostname)) {
    output.warn(`SECURITY: credentials are sent unencrypted to ${place.hostname}.`);
  }
}

function endpointOf({ binding, url }: ChosenInterface, cardUrl: string | undefined) {
  if (canonicalBinding(binding) === "GRPC") {
    const address = parseGrpcAddress(url, { cardUrl });
    return address && { hostname: address.authority.replace(/:\d+$/, ""), secure: address.secure };
  }
  if (!canParseUrl(url)) return undefined;
  const { hostname, protocol } = new URL(url);
  return { hostname, secure: protocol !== "http:" };
}
