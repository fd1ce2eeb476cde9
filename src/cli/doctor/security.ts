import { stat } from "node:fs/promises";
import { externallyReachableHost, isLoopback } from "../../server/access/loopback.ts";
import { isSecretName } from "../../server/logging/redact.ts";
import type { Check } from "./checks.ts";

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
  readonly origins: ReadonlyMap<string, { readonly variables: readonly string[] }>;
}

type Finding = Pick<Check, "status" | "detail"> & { readonly about: string };

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
    ...checkOperation(config),
  ];
  if (findings.length === 0) {
    const where = isPublic(config) ? "nothing weak was found" : "only this machine can reach the server";
    return [{ name: "security", status: "ok", detail: where }];
  }
  return findings.map(({ about, status, detail }) => ({ name: `security: ${about}`, status, detail }));
}

/** Reachable from other machines, directly or through a proxy. */
function isPublic({ server: { host, publicUrl } }: SecurityConfig): boolean {
  return externallyReachableHost(host, publicUrl) !== undefined;
}

const hostOf = (url: string) => new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");

function authenticatesCallers({ auth }: SecurityConfig): boolean {
  const { apiKeys = [], basic = [], jwt, mtls } = auth;
  return apiKeys.length > 0 || basic.length > 0 || jwt !== undefined || mtls !== undefined;
}

function checkCallers(config: SecurityConfig): Finding[] {
  if (config.origins.has("auth") && !authenticatesCallers(config) && config.auth.anonymous !== true) {
    const status = isPublic(config) ? "failed" : "warning";
    return [{ about: "callers", status, detail: "auth is there, but no way to log in is configured" }];
  }
  if (!isPublic(config) || (authenticatesCallers(config) && config.auth.anonymous !== true)) return [];
  const detail = authenticatesCallers(config)
    ? "auth.anonymous admits callers without credentials, also from other machines"
    : "anyone who can reach the server may call: say in auth who may";
  return [{ about: "callers", status: config.auth.anonymous === true ? "warning" : "failed", detail }];
}

const MAX_CLOCK_SKEW_MS = 5 * 60_000;

/** Settings that weaken tokens and keys. */
function checkTokens({ auth: { apiKey, jwt } }: SecurityConfig): Finding[] {
  const findings: Finding[] = [];
  for (const [name, url] of [["issuer", jwt?.issuer] as const, ["jwksUrl", jwt?.jwksUrl] as const]) {
    if (url?.startsWith("http:") !== true || isLoopback(hostOf(url))) continue;
    const detail = "is not https: anyone on the network path can substitute keys and act as any owner";
    findings.push({ about: `auth.jwt.${name}`, status: "failed", detail });
  }
  if ((jwt?.clockSkew ?? 0) > MAX_CLOCK_SKEW_MS) {
    const detail = "is more than 5m: tokens that have expired are good for as long";
    findings.push({ about: "auth.jwt.clockSkew", status: "warning", detail });
  }
  if (apiKey?.query !== undefined) {
    const detail = "puts keys into addresses, which end up in the logs of proxies";
    findings.push({ about: "auth.apiKey.query", status: "warning", detail });
  }
  return findings;
}

/** Issuers choose the owner names in tokens and certificates; those of keys and passwords are in the configuration. */
function checkOwners({ auth: { apiKeys = [], basic = [], jwt, mtls } }: SecurityConfig): Finding[] {
  const given = [jwt !== undefined, mtls !== undefined, apiKeys.length + basic.length > 0];
  if (given.filter((is) => is).length < 2) return [];
  const detail =
    "owners of tokens, certificates, keys and passwords are the same if they have the same name: someone who can choose a name in one of them gets the tasks of the other";
  return [{ about: "owners", status: "warning", detail }];
}

/** Credentials and messages that anyone on the network path can read. */
function checkTransport(config: SecurityConfig): Finding[] {
  const { host, publicUrl, tls } = config.server;
  const findings: Finding[] = [];
  const status = authenticatesCallers(config) ? "failed" : "warning";
  if (publicUrl?.startsWith("http:") === true && !isLoopback(hostOf(publicUrl))) {
    findings.push({ about: "transport", status, detail: `server.publicUrl is not https: ${publicUrl}` });
  } else if (!isLoopback(host) && tls === undefined) {
    const proxied = publicUrl?.startsWith("https:") === true;
    const detail = proxied
      ? `without server.tls, ${host} is reachable in plain text beside the proxy: listen on loopback, or shut the port`
      : `without server.tls, what is sent to ${host} can be read on the way`;
    findings.push({ about: "transport", status: proxied ? "warning" : status, detail });
  }
  return findings;
}

function checkSecrets(config: SecurityConfig): Finding[] {
  const { apiKeys = [], basic = [] } = config.auth;
  const status = isPublic(config) ? "failed" : "warning";
  const findings: Finding[] = [];
  const look = (about: string, secret: string) => {
    const why = findWeakness(secret);
    if (why !== undefined) findings.push({ about, status, detail: why });
  };
  for (const [at, { key }] of apiKeys.entries()) look(`auth.apiKeys[${at}].key`, key);
  for (const [at, { password }] of basic.entries()) look(`auth.basic[${at}].password`, password);
  if (config.push?.hmac !== undefined) look("push.hmac.secret", config.push.hmac.secret);
  return findings;
}

/** The result does not reveal the secret. */
export function findWeakness(secret: string): string | undefined {
  const advice = "make one with: openssl rand -base64 32";
  if (secret.length < MIN_SECRET_LENGTH) return `is shorter than ${MIN_SECRET_LENGTH} characters; ${advice}`;
  if (new Set(secret).size < MIN_DISTINCT_CHARACTERS) return `repeats a few characters; ${advice}`;
  return COMMON_SECRETS.test(secret) ? `looks like one from an example; ${advice}` : undefined;
}

async function checkFilePermissions(config: SecurityConfig, file: string): Promise<Finding[]> {
  if (process.platform === "win32") return [];
  const { server, signing, store, audit, push } = config;
  const storeFile = store.startsWith("sqlite:") ? store.slice("sqlite:".length) : undefined;
  const looks = [
    checkPermissions("the configuration", holdsSecrets(config) ? file : undefined, "warning"),
    checkPermissions("server.tls.key", server.tls?.key, "failed"),
    checkPermissions("push.jwt.keyFile", push?.jwt?.keyFile, "failed"),
    checkPermissions("signing.keyFile", signing?.keyFile, "failed"),
    checkPermissions("store", storeFile, "warning"),
    checkPermissions("audit.file", audit?.file, "warning"),
  ];
  return (await Promise.all(looks)).flat();
}

const OTHERS_READ = 0o004;
const GROUP_READS = 0o040;

/** Whether other users of this machine can read a file. A file that does not exist yet passes. */
async function checkPermissions(about: string, file: string | undefined, status: Check["status"]): Promise<Finding[]> {
  if (file === undefined) return [];
  const mode = await stat(file).then(
    (found) => found.mode,
    () => 0,
  );
  if ((mode & OTHERS_READ) !== 0) {
    return [{ about, status, detail: `${file} can be read by everyone on this machine: chmod 600` }];
  }
  const isKey = status === "failed" && (mode & GROUP_READS) !== 0;
  return isKey ? [{ about, status: "warning", detail: `${file} can be read by its group: chmod 600` }] : [];
}

const SECRET_PATH =
  /^(?:auth\.apiKeys\[\d+\]\.key|auth\.basic\[\d+\]\.password|push\.hmac\.secret|[a-z]+\..+\.(?:sk|apiKey|clientSecret))$/;
const VARIABLE_PATH = /^agents\..+\.env\.([^.]+)$/;

/** Whether the file contains secrets literally rather than as environment variables. */
function holdsSecrets({ origins }: SecurityConfig): boolean {
  return [...origins].some(([path, { variables }]) => {
    const variable = VARIABLE_PATH.exec(path)?.[1] ?? "";
    return variables.length === 0 && (SECRET_PATH.test(path) || isSecretName(variable));
  });
}

function checkPushTargets({ push }: SecurityConfig): Finding[] {
  if (push?.allowPrivateTargets !== true) return [];
  const detail = "push.allowPrivateTargets lets callers make this server call addresses of the inside network";
  return [{ about: "push", status: "warning", detail }];
}

function checkOperation(config: SecurityConfig): Finding[] {
  const findings: Finding[] = [];
  if (config.server.cors.origins.includes("*")) {
    const { apiKey, basic = [], mtls } = config.auth;
    const isAdded = apiKey?.cookie !== undefined || basic.length > 0 || mtls !== undefined;
    const detail = isAdded
      ? 'server.cors.origins has "*", and browsers add cookies, passwords and certificates by themselves: name the origins'
      : 'server.cors.origins has "*": any web page may call with its visitor\'s browser';
    findings.push({ about: "cors", status: isAdded ? "failed" : "warning", detail });
  }
  if (!isPublic(config)) return findings;
  const { ratePerAddress, ratePerOwner } = config.limits;
  if (ratePerAddress === undefined && ratePerOwner === undefined) {
    const detail = "neither limits.ratePerAddress nor limits.ratePerOwner is set: one caller may take all there is";
    findings.push({ about: "limits", status: "warning", detail });
  }
  if (config.limits.storedBytesPerOwner === undefined && config.times.pruneAfterMs === undefined) {
    const detail = "neither limits.storedBytesPerOwner nor retention.pruneAfter is set: callers may fill the disk";
    findings.push({ about: "store", status: "warning", detail });
  }
  if (config.audit === undefined) {
    const detail = "without audit.file there is no record of who did what";
    findings.push({ about: "audit", status: "warning", detail });
  }
  return findings;
}
