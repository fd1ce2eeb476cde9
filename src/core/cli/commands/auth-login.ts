import { createGuardedFetch } from "../../auth/guarded-fetch/guarded-fetch.ts";
import { type Grant, LoginError, type StoredCredential } from "../../auth/login/contract.ts";
import { logIn } from "../../auth/login/oauth/log-in.ts";
import {
  acceptedSchemeSets,
  allowsAnonymous,
  chooseLogin,
  type NamedScheme,
  type OAuthScheme,
  type OpenIdScheme,
  type Scheme,
} from "../../auth/login/security-schemes.ts";
import type { FetchedCard } from "../../client/card/fetch-card.ts";
import { canParseUrl } from "../../model/url.ts";
import { CommandError, usageError } from "../errors.ts";
import { ifGiven, readInteger } from "../flag-values.ts";
import type { Output } from "../output.ts";
import { agentUrl, isLoopbackOrigin, openVault, untrustedOrigins } from "../session/credentials.ts";
import { readStandardInput } from "../session/message-parts.ts";
import { reportResult } from "../session/report.ts";
import { type ClientFlags, resolveCard, type Session, withSession } from "../session/session.ts";
import { renderCredential, toCredentialView } from "./auth.ts";

/** Secrets are read from the environment, standard input or a prompt, never from an argument: other users can see those. */
interface SecretSource {
  /** What it is, for the prompt and the error. */
  readonly what: string;
  readonly variable: string;
  /** The flag that selects standard input, and whether it was given. */
  readonly flag: string;
  readonly fromStandardInput: boolean;
  /** The value from a setting. */
  readonly given?: string | undefined;
}

/** Undefined if it was not given and there is no terminal to prompt on. */
async function readSecret(output: Output, source: SecretSource): Promise<string | undefined> {
  const secret = source.fromStandardInput
    ? (await readStandardInput()).toString("utf8").replace(/\r?\n$/, "")
    : (source.given ?? process.env[source.variable] ?? (await promptFor(output, source.what, "secret")));
  if (secret === undefined || secret === "") return undefined;
  output.addSecret(secret);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: headers must not contain them
  if (/[\u0000-\u001f\u007f]/.test(secret)) throw usageError(`The ${source.what} must be a single line of text.`);
  return secret;
}

async function requireSecret(output: Output, source: SecretSource): Promise<string> {
  const secret = await readSecret(output, source);
  if (secret !== undefined) return secret;
  throw new CommandError(
    "A2ACLI_ERR_CREDENTIALS_MISSING",
    `The ${source.what} is missing.`,
    `Set ${source.variable}, or pass it on standard input with ${source.flag}.`,
  );
}

/** Undefined without a terminal. */
async function promptFor(output: Output, what: string, kind: "secret" | "text"): Promise<string | undefined> {
  if (process.stdin.isTTY !== true || !output.stderrIsTerminal) return undefined;
  const { isCancel, password, text } = await import("@clack/prompts");
  const message = `${what.charAt(0).toUpperCase()}${what.slice(1)}`;
  const options = { message, output: process.stderr };
  const answer = kind === "secret" ? await password(options) : await text(options);
  if (isCancel(answer)) throw new CommandError("DRAGOMAN_ERR_INTERRUPTED", "Interrupted.");
  return answer;
}

export interface AuthLoginFlags extends ClientFlags {
  readonly scheme?: string;
  readonly flow?: Grant;
  readonly device?: boolean;
  readonly clientId?: string;
  readonly clientSecretStdin?: boolean;
  readonly secretStdin?: boolean;
  readonly user?: string;
  readonly scopes?: readonly string[];
  readonly resource?: string;
  readonly issuer?: string;
  readonly redirectPort?: string;
  readonly share?: boolean;
}

export function authLogin(output: Output, flags: AuthLoginFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    checkFlags(flags);
    const found = await resolveCard(session);
    if (flags.scheme === undefined && acceptedSchemeSets(found.card).length === 0) {
      output.info("The agent requires no login.");
      reportResult(session, [], () => "");
      return;
    }
    const agent = agentUrl(found.url, found.card);
    if (agent === undefined) throw usageError("The card contains no address to store credentials for.");
    const way = chooseLogin(found.card, {
      scheme: flags.scheme,
      grant: grantOf(flags),
      prepared: preparedKinds(session, flags),
    });
    if (flags.share === true && !way.every(({ scheme: { kind } }) => kind === "oauth2" || kind === "openid")) {
      throw usageError("--share needs a login at an authorization server: other credentials name no issuer.");
    }
    if (allowsAnonymous(found.card)) output.info("The agent also serves callers who do not log in.");
    const obtained: (readonly [string, StoredCredential])[] = [];
    for (const named of way) obtained.push([named.name, await obtainCredential(session, flags, named, agent)]);
    const { credentialOrigin } = session.settings;
    // Only origins from a flag are stored with the login; those from a file or variable apply while they are set.
    const origins = flags.credentialOrigin === undefined ? [] : credentialOrigin;
    const stored = await openVault(output).update(agent, (current) => ({
      agent,
      shared: (flags.share ?? current.shared) ? true : undefined,
      origins: [...new Set([...current.origins, ...origins])],
      schemes: { ...current.schemes, ...Object.fromEntries(obtained) },
    }));
    const views = obtained.map(([name, credential]) => toCredentialView(agent, name, credential, Date.now()));
    reportResult(session, views, () => views.map(renderCredential).join(""));
    warnAboutUntrustedOrigins(output, found, [...credentialOrigin, ...stored.origins]);
  });
}

function checkFlags(flags: AuthLoginFlags): void {
  if (flags.secretStdin === true && flags.clientSecretStdin === true) {
    throw usageError(
      "--secret-stdin and --client-secret-stdin are mutually exclusive: there is only one standard input.",
    );
  }
  if (flags.device === true && flags.flow !== undefined && flags.flow !== "device-code") {
    throw usageError("--device means --flow device-code and cannot be combined with another flow.");
  }
}

function grantOf({ device, flow }: AuthLoginFlags): Grant | undefined {
  return device === true ? "device-code" : flow;
}

/** The kinds of scheme that the flags suggest, for cards that offer a choice. */
function preparedKinds({ settings }: Session, flags: AuthLoginFlags): readonly Scheme["kind"][] {
  const kinds: Scheme["kind"][] = [];
  if (settings.apiKey !== undefined) kinds.push("api-key");
  if (settings.bearer !== undefined) kinds.push("bearer");
  if (flags.user !== undefined) kinds.push("basic");
  if (flags.clientId !== undefined || process.env.A2ACLI_CLIENT_ID) kinds.push("oauth2", "openid");
  return kinds;
}

function obtainCredential(
  session: Session,
  flags: AuthLoginFlags,
  named: NamedScheme,
  agent: string,
): Promise<StoredCredential> {
  const { scheme } = named;
  switch (scheme.kind) {
    case "api-key":
    case "bearer":
      return obtainSecret(session, flags, scheme);
    case "basic":
      return obtainPassword(session, flags);
    case "oauth2":
    case "openid":
      return obtainTokens(session, flags, { ...named, scheme }, agent);
    case "unsupported":
      throw new LoginError("unsupported", `The scheme ${named.name} cannot be used: ${scheme.reason}.`);
  }
}

async function obtainSecret(
  { output, settings }: Session,
  flags: AuthLoginFlags,
  scheme: Extract<Scheme, { kind: "api-key" | "bearer" }>,
): Promise<StoredCredential> {
  const isKey = scheme.kind === "api-key";
  const secret = await requireSecret(output, {
    what: isKey ? "API key" : "bearer token",
    variable: isKey ? "A2ACLI_API_KEY" : "A2ACLI_BEARER",
    flag: "--secret-stdin",
    fromStandardInput: flags.secretStdin === true,
    given: isKey ? settings.apiKey : settings.bearer,
  });
  if (scheme.kind === "bearer") return { kind: "bearer", token: secret };
  const { location, parameter } = scheme;
  return { kind: "api-key", location, parameter, key: secret };
}

async function obtainPassword({ output }: Session, flags: AuthLoginFlags): Promise<StoredCredential> {
  const user = flags.user ?? (await promptFor(output, "user name", "text"));
  if (user === undefined || user === "" || user.includes(":")) {
    throw new CommandError("A2ACLI_ERR_CREDENTIALS_MISSING", "A user name without a colon is required.", "Set --user.");
  }
  const password = await requireSecret(output, {
    what: "password",
    variable: "A2ACLI_PASSWORD",
    flag: "--secret-stdin",
    fromStandardInput: flags.secretStdin === true,
  });
  return { kind: "basic", user, password };
}

async function obtainTokens(
  { output, stop }: Session,
  flags: AuthLoginFlags,
  { name, scheme, scopes }: NamedScheme & { readonly scheme: OAuthScheme | OpenIdScheme },
  agent: string,
): Promise<StoredCredential> {
  const clientId = flags.clientId ?? process.env.A2ACLI_CLIENT_ID ?? (await promptFor(output, "client id", "text"));
  if (clientId === undefined || clientId === "") {
    throw new CommandError(
      "A2ACLI_ERR_CREDENTIALS_MISSING",
      `The scheme ${name} requires a client id that is registered with its authorization server.`,
      "Set --client-id or A2ACLI_CLIENT_ID.",
    );
  }
  const grant = grantOf(flags) ?? (scheme.kind === "oauth2" ? scheme.grant : "authorization-code");
  const source = {
    what: "client secret",
    variable: "A2ACLI_CLIENT_SECRET",
    flag: "--client-secret-stdin",
    fromStandardInput: flags.clientSecretStdin === true,
  };
  // Clients on a user's machine are public and have no secret; only the client credentials grant requires one.
  const isGiven = source.fromStandardInput || process.env.A2ACLI_CLIENT_SECRET !== undefined;
  const clientSecret =
    grant === "client-credentials"
      ? await requireSecret(output, source)
      : isGiven
        ? await readSecret(output, source)
        : undefined;
  if (scheme.kind === "oauth2" && scheme.scopes.length > 0 && scopes.length === 0 && flags.scopes === undefined) {
    output.info(`No scope is asked for; --scopes can name some of ${scheme.scopes.join(", ")}`);
  }
  const credential = await logIn({
    scheme,
    grant,
    clientId,
    clientSecret,
    scopes: flags.scopes?.flatMap((given) => given.split(/[\s,]+/)).filter((scope) => scope !== ""),
    requiredScopes: scopes,
    resource: flags.resource,
    issuer: flags.issuer,
    redirectPort: ifGiven(flags.redirectPort, (text) => readInteger("--redirect-port", text, 1, 65_535)),
    allowLoopback: isLoopbackOrigin(agent),
    fetch: createServerFetch(agent, flags.issuer),
    signal: stop.signal,
    now: Date.now,
    onServer: (issuer) => output.info(`Logging in at ${issuer}, which the agent's card names.`),
    onAddress: (url) => output.info(["Open this address in a browser:", url]),
    onCode: ({ completeUri, expiresInSeconds, userCode, verificationUri }) => {
      const within = `within ${Math.max(1, Math.floor(expiresInSeconds / 60))} min`;
      output.info(`Open ${verificationUri} in a browser and enter the code ${userCode} ${within}`);
      if (completeUri !== undefined) output.info(`or open ${completeUri}`);
    },
  });
  output.addSecret(credential.accessToken);
  if (credential.refreshToken !== undefined) output.addSecret(credential.refreshToken);
  return credential;
}

/**
 * The card names the authorization server, so private addresses are refused, except for a local agent and for the hosts
 * of the agent and of the issuer that the user named.
 */
function createServerFetch(agent: string, issuer: string | undefined): typeof globalThis.fetch {
  const trusted = issuer !== undefined && canParseUrl(issuer) ? [agent, issuer] : [agent];
  return createGuardedFetch({
    allowPrivate: isLoopbackOrigin(agent),
    allow: trusted.map((url) => new URL(url).hostname),
  });
}

/** Interfaces on another origin than the card's receive no credentials unless the user allows it. */
function warnAboutUntrustedOrigins(output: Output, { card, url }: FetchedCard, origins: readonly string[]): void {
  for (const origin of untrustedOrigins(card, url, origins)) {
    output.warn(
      `The card also names ${origin}; credentials are not sent there unless you allow it with --credential-origin.`,
    );
  }
}
