import { stat } from "node:fs/promises";
import { isLoopback } from "../server/loopback.ts";
import { isSecretName } from "../server/redact.ts";
import type { Check } from "./doctor-checks.ts";

/** What is looked at of a configuration. */
export interface ExposedConfig {
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
    readonly jwt?: object | undefined;
    readonly mtls?: object | undefined;
  };
  readonly limits: { readonly ratePerAddress?: number | undefined; readonly ratePerOwner?: number | undefined };
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

/** A secret that is typed rather than made takes this long to guess only if it is longer. */
const SHORTEST_SECRET = 16;
const FEWEST_CHARACTERS = 6;
/** Taken from examples, or the first thing that comes to mind. */
const WELL_KNOWN =
  /change.?me|example|secret|password|passw0rd|default|sample|insert|replace|your.?(?:api.?)?key|test|demo|alice|dragoman|12345|abcdef|qwert|letmein/i;

/** What of the settings would be weak where others can reach the server; one line that all is well if none is. */
export async function checkSecurity(config: ExposedConfig, file: string): Promise<readonly Check[]> {
  const findings = [
    ...callersOf(config),
    ...transportOf(config),
    ...secretsOf(config),
    ...(await filesOf(config, file)),
    ...outboundOf(config),
    ...operationOf(config),
  ];
  if (findings.length === 0) {
    const where = isPublic(config) ? "nothing weak was found" : "only this machine can reach the server";
    return [{ name: "security", status: "ok", detail: where }];
  }
  return findings.map(({ about, status, detail }) => ({ name: `security: ${about}`, status, detail }));
}

/** Reached from elsewhere, by itself or through a proxy. */
function isPublic({ server: { host, publicUrl } }: ExposedConfig): boolean {
  return !isLoopback(host) || (publicUrl !== undefined && !isLoopback(hostOf(publicUrl)));
}

const hostOf = (url: string) => new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");

function identifies({ auth }: ExposedConfig): boolean {
  const { apiKeys = [], basic = [], jwt, mtls } = auth;
  return apiKeys.length > 0 || basic.length > 0 || jwt !== undefined || mtls !== undefined;
}

function callersOf(config: ExposedConfig): Finding[] {
  if (!isPublic(config) || (identifies(config) && config.auth.anonymous !== true)) return [];
  const detail = identifies(config)
    ? "auth.anonymous lets in whoever shows no credentials, also from other machines"
    : "anyone who can reach the server may call: say in auth who may";
  return [{ about: "callers", status: "warning", detail }];
}

/** Credentials and messages that anyone on the way can read. */
function transportOf(config: ExposedConfig): Finding[] {
  const { host, publicUrl, tls } = config.server;
  const findings: Finding[] = [];
  const status = identifies(config) ? "failed" : "warning";
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

function secretsOf(config: ExposedConfig): Finding[] {
  const { apiKeys = [], basic = [] } = config.auth;
  const status = isPublic(config) ? "failed" : "warning";
  const findings: Finding[] = [];
  const look = (about: string, secret: string) => {
    const why = weakness(secret);
    if (why !== undefined) findings.push({ about, status, detail: why });
  };
  for (const [at, { key }] of apiKeys.entries()) look(`auth.apiKeys[${at}].key`, key);
  for (const [at, { password }] of basic.entries()) look(`auth.basic[${at}].password`, password);
  if (config.push?.hmac !== undefined) look("push.hmac.secret", config.push.hmac.secret);
  return findings;
}

/** Says nothing of the secret itself. */
export function weakness(secret: string): string | undefined {
  const advice = "make one with: openssl rand -base64 32";
  if (secret.length < SHORTEST_SECRET) return `is shorter than ${SHORTEST_SECRET} characters; ${advice}`;
  if (new Set(secret).size < FEWEST_CHARACTERS) return `repeats a few characters; ${advice}`;
  return WELL_KNOWN.test(secret) ? `looks like one from an example; ${advice}` : undefined;
}

async function filesOf(config: ExposedConfig, file: string): Promise<Finding[]> {
  if (process.platform === "win32") return [];
  const { server, signing, store, audit, push } = config;
  const storeFile = store.startsWith("sqlite:") ? store.slice("sqlite:".length) : undefined;
  const looks = [
    readable("the configuration", holdsSecrets(config) ? file : undefined, "warning"),
    readable("server.tls.key", server.tls?.key, "failed"),
    readable("push.jwt.keyFile", push?.jwt?.keyFile, "failed"),
    readable("signing.keyFile", signing?.keyFile, "failed"),
    readable("store", storeFile, "warning"),
    readable("audit.file", audit?.file, "warning"),
  ];
  return (await Promise.all(looks)).flat();
}

const OTHERS_READ = 0o004;
const GROUP_READS = 0o040;

/** Whether others on this machine may read a file; one that does not exist yet is nobody's to read. */
async function readable(about: string, file: string | undefined, status: Check["status"]): Promise<Finding[]> {
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

/** Written out rather than taken from the environment. */
function holdsSecrets({ origins }: ExposedConfig): boolean {
  return [...origins].some(([path, { variables }]) => {
    const name = path.split(".").at(-1) ?? "";
    return (
      variables.length === 0 &&
      (isSecretName(name) || /^apiKeys\[\d+\]\.key$/.test(path.split(".").slice(-2).join(".")))
    );
  });
}

function outboundOf({ push }: ExposedConfig): Finding[] {
  if (push?.allowPrivateTargets !== true) return [];
  const detail = "push.allowPrivateTargets lets callers make this server call addresses of the inside network";
  return [{ about: "push", status: "warning", detail }];
}

function operationOf(config: ExposedConfig): Finding[] {
  const findings: Finding[] = [];
  if (config.server.cors.origins.includes("*")) {
    const detail = 'server.cors.origins has "*": any web page may call with its visitor\'s browser';
    findings.push({ about: "cors", status: "warning", detail });
  }
  if (!isPublic(config)) return findings;
  const { ratePerAddress, ratePerOwner } = config.limits;
  if (ratePerAddress === undefined && ratePerOwner === undefined) {
    const detail = "neither limits.ratePerAddress nor limits.ratePerOwner is set: one caller may take all there is";
    findings.push({ about: "limits", status: "warning", detail });
  }
  if (config.audit === undefined) {
    const detail = "without audit.file there is no record of who did what";
    findings.push({ about: "audit", status: "warning", detail });
  }
  return findings;
}
