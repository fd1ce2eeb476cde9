import { stat } from "node:fs/promises";
import { externallyReachableHost, hostNameOf, isLoopback } from "../../server/access/loopback.ts";
import { isSecretName } from "../../server/logging/redact.ts";
import { type Check, failed, ok, warning } from "./checks.ts";

interface IssuerConfig {
  readonly issuer: string;
  readonly jwksUrl?: string | undefined;
  /** Milliseconds. */
  readonly clockSkew?: number | undefined;
}

/** The part of a configuration that is checked. */
export interface SecurityConfig {
  readonly server: {
    readonly host: string;
    readonly publicUrl?: string | undefined;
    readonly cors: { readonly origins: readonly string[] };
    readonly tls?: { readonly key: string } | undefined;
  };
  readonly auth: {
    readonly anonymous?: boolean | undefined;
    readonly apiKeys?: readonly { readonly key: string; readonly owner: string }[] | undefined;
    readonly basic?: readonly { readonly user: string; readonly password: string }[] | undefined;
    readonly apiKey?: { readonly query?: string | undefined; readonly cookie?: string | undefined } | undefined;
    readonly jwt?: IssuerConfig | undefined;
    readonly mtls?: object | undefined;
  };
  readonly limits: {
    readonly ratePerAddress?: number | undefined;
    readonly ratePerOwner?: number | undefined;
    readonly storedBytesPerOwner?: number | undefined;
  };
  readonly times: { readonly pruneAfterMs?: number | undefined };
  readonly store: string;
  readonly audit?: { readonly file: string } | undefined;
  readonly push?:
    | {
        readonly allowPrivateTargets?: boolean | undefined;
        readonly hmac?: { readonly secret: string } | undefined;
        readonly jwt?: { readonly keyFile: string } | undefined;
      }
    | undefined;
  readonly signing?: { readonly keyFile: string } | undefined;
  readonly findOrigins: () => ReadonlyMap<string, { readonly variables: readonly string[] }>;
}

/** Shorter secrets can be guessed when a person chose them rather than a generator. */
const MIN_SECRET_LENGTH = 16;
const MIN_DISTINCT_CHARACTERS = 6;
/** Values copied from examples, and obvious choices. */
const COMMON_SECRETS =
  /change.?me|example|secret|password|passw0rd|default|sample|insert|replace|your.?(?:api.?)?key|test|demo|alice|dragoman|12345|abcdef|qwert|letmein/i;

/** Settings that are weak on a server that others can reach; a single passed check if there are none. */
export async function checkSecurity(config: SecurityConfig, file: string): Promise<readonly Check[]> {
  const findings = [
    ...checkCallers(config),
    ...checkTokens(config),
    ...checkOwners(config),
    ...checkTransport(config),
    ...checkSecrets(config),
    ...(await checkFilePermissions(config, file)),
    ...checkPushTargets(config),
    ...checkCors(config),
    ...checkOperation(config),
  ];
  if (findings.length > 0) return findings.map((found) => ({ ...found, name: `security: ${found.name}` }));
  return [ok("security", isPublic(config) ? "nothing weak was found" : "only this machine can reach the server")];
}

/** Reachable from other machines, directly or through a proxy. */
function isPublic({ server: { host, publicUrl } }: SecurityConfig): boolean {
  return externallyReachableHost(host, publicUrl) !== undefined;
}

const hostOf = (url: string) => hostNameOf(new URL(url).hostname);

function authenticatesCallers({ auth }: SecurityConfig): boolean {
  const { apiKeys = [], basic = [], jwt, mtls } = auth;
  return apiKeys.length > 0 || basic.length > 0 || jwt !== undefined || mtls !== undefined;
}

function checkCallers(config: SecurityConfig): Check[] {
  const { anonymous } = config.auth;
  const authenticates = authenticatesCallers(config);
  if (config.findOrigins().has("auth") && !authenticates && anonymous !== true) {
    return [(isPublic(config) ? failed : warning)("callers", "auth is set, but contains no way to log in")];
  }
  if (!isPublic(config) || (authenticates && anonymous !== true)) return [];
  const detail = authenticates
    ? "auth.anonymous admits callers without credentials, also from other machines"
    : "anyone who can reach the server may call it: restrict that in auth";
  return [(anonymous === true ? warning : failed)("callers", detail)];
}

const MAX_CLOCK_SKEW_MS = 5 * 60_000;

/** Settings that weaken tokens and keys. */
function checkTokens({ auth: { apiKey, jwt } }: SecurityConfig): Check[] {
  const findings: Check[] = [];
  for (const [name, url] of Object.entries({ issuer: jwt?.issuer, jwksUrl: jwt?.jwksUrl })) {
    if (url?.startsWith("http:") !== true || isLoopback(hostOf(url))) continue;
    const detail = "is not https: anyone on the network path can substitute keys and act as any owner";
    findings.push(failed(`auth.jwt.${name}`, detail));
  }
  if ((jwt?.clockSkew ?? 0) > MAX_CLOCK_SKEW_MS) {
    findings.push(warning("auth.jwt.clockSkew", "is more than 5m: expired tokens are accepted for as long"));
  }
  if (apiKey?.query !== undefined) {
    findings.push(warning("auth.apiKey.query", "puts keys into URLs, which end up in the logs of proxies"));
  }
  return findings;
}

/** Issuers choose the owner names in tokens and certificates; those of keys and passwords are in the configuration. */
function checkOwners({ auth: { apiKeys = [], basic = [], jwt, mtls } }: SecurityConfig): Check[] {
  const given = [jwt !== undefined, mtls !== undefined, apiKeys.length + basic.length > 0];
  if (given.filter((is) => is).length < 2) return [];
  const detail =
    "owners of tokens, certificates, keys and passwords are the same if they have the same name: someone who can choose a name in one of them gets the tasks of the other";
  return [warning("owners", detail)];
}

/** Credentials and messages that anyone on the network path can read. */
function checkTransport(config: SecurityConfig): Check[] {
  const { host, publicUrl, tls } = config.server;
  const exposed = authenticatesCallers(config) ? failed : warning;
  if (publicUrl?.startsWith("http:") === true && !isLoopback(hostOf(publicUrl))) {
    return [exposed("transport", `server.publicUrl is not https: ${publicUrl}`)];
  }
  if (isLoopback(host) || tls !== undefined) return [];
  if (publicUrl?.startsWith("https:") !== true) {
    return [exposed("transport", `without server.tls, what is sent to ${host} can be read on the way`)];
  }
  const detail = `without server.tls, ${host} is reachable in plain text beside the proxy: listen on loopback, or close the port`;
  return [warning("transport", detail)];
}

function checkSecrets(config: SecurityConfig): Check[] {
  const { apiKeys = [], basic = [] } = config.auth;
  const hmac = config.push?.hmac;
  const secrets = [
    ...apiKeys.map(({ key }, at) => [`auth.apiKeys[${at}].key`, key] as const),
    ...basic.map(({ password }, at) => [`auth.basic[${at}].password`, password] as const),
    ...(hmac === undefined ? [] : [["push.hmac.secret", hmac.secret] as const]),
  ];
  return secrets.flatMap(([name, secret]) => {
    const why = findWeakness(secret);
    return why === undefined ? [] : [(isPublic(config) ? failed : warning)(name, why)];
  });
}

/** The result does not reveal the secret. */
export function findWeakness(secret: string): string | undefined {
  const advice = "make one with: openssl rand -base64 32";
  if (secret.length < MIN_SECRET_LENGTH) return `is shorter than ${MIN_SECRET_LENGTH} characters; ${advice}`;
  if (new Set(secret).size < MIN_DISTINCT_CHARACTERS) return `repeats a few characters; ${advice}`;
  return COMMON_SECRETS.test(secret) ? `looks like one from an example; ${advice}` : undefined;
}

async function checkFilePermissions(config: SecurityConfig, file: string): Promise<Check[]> {
  if (process.platform === "win32") return [];
  const { server, signing, store, audit, push } = config;
  const storeFile = store.startsWith("sqlite:") ? store.slice("sqlite:".length) : undefined;
  const looks = [
    checkPermissions("the configuration", holdsSecrets(config) ? file : undefined),
    checkPermissions("server.tls.key", server.tls?.key, "key"),
    checkPermissions("push.jwt.keyFile", push?.jwt?.keyFile, "key"),
    checkPermissions("signing.keyFile", signing?.keyFile, "key"),
    checkPermissions("store", storeFile),
    checkPermissions("audit.file", audit?.file),
  ];
  return (await Promise.all(looks)).flat();
}

const OTHERS_READ = 0o004;
const GROUP_READS = 0o040;

/** Whether other users of this machine can read a file. A file that does not exist yet passes. */
async function checkPermissions(name: string, file: string | undefined, kind?: "key"): Promise<Check[]> {
  if (file === undefined) return [];
  const { mode } = await stat(file).catch(() => ({ mode: 0 }));
  const everyone = `${file} can be read by everyone on this machine: chmod 600`;
  if ((mode & OTHERS_READ) !== 0) return [(kind === "key" ? failed : warning)(name, everyone)];
  if (kind !== "key" || (mode & GROUP_READS) === 0) return [];
  return [warning(name, `${file} can be read by its group: chmod 600`)];
}

const SECRET_PATH =
  /^(?:auth\.apiKeys\[\d+\]\.key|auth\.basic\[\d+\]\.password|push\.hmac\.secret|[a-z]+\..+\.(?:sk|apiKey|clientSecret))$/;
const VARIABLE_PATH = /^agents\..+\.env\.([^.]+)$/;

/** Whether the file contains secrets literally rather than as environment variables. */
function holdsSecrets({ findOrigins }: SecurityConfig): boolean {
  return [...findOrigins()].some(([path, { variables }]) => {
    const variable = VARIABLE_PATH.exec(path)?.[1] ?? "";
    return variables.length === 0 && (SECRET_PATH.test(path) || isSecretName(variable));
  });
}

function checkPushTargets({ push }: SecurityConfig): Check[] {
  if (push?.allowPrivateTargets !== true) return [];
  return [
    warning("push", "push.allowPrivateTargets lets callers make this server call addresses of the private network"),
  ];
}

function checkCors({ auth: { apiKey, basic = [], mtls }, server }: SecurityConfig): Check[] {
  if (!server.cors.origins.includes("*")) return [];
  if (apiKey?.cookie === undefined && basic.length === 0 && mtls === undefined) {
    return [warning("cors", 'server.cors.origins has "*": any web page may call with its visitor\'s browser')];
  }
  const detail =
    'server.cors.origins has "*", and browsers add cookies, passwords and certificates by themselves: name the origins';
  return [failed("cors", detail)];
}

function checkOperation(config: SecurityConfig): Check[] {
  if (!isPublic(config)) return [];
  const { ratePerAddress, ratePerOwner, storedBytesPerOwner } = config.limits;
  const findings: Check[] = [];
  if (ratePerAddress === undefined && ratePerOwner === undefined) {
    const detail = "neither limits.ratePerAddress nor limits.ratePerOwner is set: one caller may use all capacity";
    findings.push(warning("limits", detail));
  }
  if (storedBytesPerOwner === undefined && config.times.pruneAfterMs === undefined) {
    const detail = "neither limits.storedBytesPerOwner nor retention.pruneAfter is set: callers may fill the disk";
    findings.push(warning("store", detail));
  }
  if (config.audit === undefined)
    findings.push(warning("audit", "without audit.file there is no record of who did what"));
  return findings;
}
