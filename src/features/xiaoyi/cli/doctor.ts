/** Checks for settings that make conversations with Xiaoyi's phones unsafe or impossible. */
import { isIP } from "node:net";
import { type Check, failed, messageOf, ok, skipped, warning } from "../../../core/cli/doctor/checks.ts";
import { findWeakness } from "../../../core/cli/doctor/security.ts";
import type { DoctorParts } from "../../../core/extension/contract.ts";
import { externallyReachableHost, hostNameOf, isLoopback } from "../../../core/server/access/loopback.ts";
import { systemClock } from "../../../core/server/clock-and-ids.ts";
import type { DragomanConfig } from "../../../core/server/config/index.ts";
import { DialError } from "../../../core/wire/dial-error.ts";
import { dialWebSocket } from "../../../core/wire/websocket-dial.ts";
import { SIGNATURE_WINDOW_MS } from "../codec/signature.ts";
import { type LinkSource, type XiaoyiConfig, xiaoyiOf } from "../server/config.ts";
import { checkDuplicateLinks, type DialledEntry, dialHeaders, linkServersOf } from "../server/link-servers.ts";

type CheckedConfig = Pick<DragomanConfig, "agents" | "findOrigins" | "server"> & { readonly xiaoyi: XiaoyiConfig };
type XiaoyiHttpConfig = XiaoyiConfig["http"][number];
type XiaoyiLinkConfig = XiaoyiConfig["links"][number];

export const doctorParts: DoctorParts = {
  async checks(config, { online = false }) {
    const xiaoyi = xiaoyiOf(config);
    return [...checkXiaoyi({ ...config, xiaoyi }, systemClock.now()), ...(await checkLinks(xiaoyi.links, online))];
  },
};

/** Empty if Xiaoyi is not configured. */
export function checkXiaoyi(config: CheckedConfig, now: number): readonly Check[] {
  const { http, links } = config.xiaoyi;
  const findings = [
    ...checkReachability(config),
    ...checkPlaceholders(config),
    ...checkSecrets(config),
    ...http.flatMap((entry, index) => checkKeyInQuery(entry, `xiaoyi.http[${index}]`)),
    ...checkDuplicateCallers(http),
    ...links.flatMap((entry, index) => checkBackup(entry, `xiaoyi.links[${index}].backup`)),
    ...checkDuplicateAgents(links),
    ...checkPlainCredentials(config),
    ...checkFileHosts(config),
  ];
  const isSigning = links.length > 0 || http.some(({ push, sk }) => (push ?? sk) !== undefined);
  if (isSigning) findings.push(checkClock(now));
  return findings;
}

const REACHED_PORTS: ReadonlySet<string> = new Set(["", "80", "443"]);

/** The platform calls the address entered in its console, and reports nothing when that fails. */
function checkReachability({ server: { host, publicUrl }, xiaoyi }: CheckedConfig): readonly Check[] {
  const name = "xiaoyi.http";
  if (xiaoyi.http.length === 0) return [];
  if (externallyReachableHost(host, publicUrl) === undefined)
    return [warning(name, "only this machine can reach the server")];
  if (publicUrl === undefined)
    return [warning(name, "set server.publicUrl to the address at which the platform reaches the server")];
  const { port, protocol } = new URL(publicUrl);
  if (protocol !== "https:") return [failed(name, `the platform calls https only: ${publicUrl}`)];
  return REACHED_PORTS.has(port) ? [] : [failed(name, `the platform reaches ports 80 and 443 only: ${publicUrl}`)];
}

/** Checks secrets chosen by the operator; the platform issues the keys of links. Those of http also seal sessions. */
function checkSecrets({ agents, server: { host, publicUrl }, xiaoyi }: CheckedConfig): readonly Check[] {
  const chosen = [
    ...xiaoyi.http.flatMap(({ apiKey, oauth, sk }, index) => [
      [`xiaoyi.http[${index}].sk`, sk] as const,
      [`xiaoyi.http[${index}].apiKey`, apiKey] as const,
      [`xiaoyi.http[${index}].oauth.clientSecret`, oauth?.clientSecret] as const,
    ]),
    ...[...agents].map(([name, { kind, source }]) => {
      return [`agents.${name}.link.sk`, kind === "link" ? (source as LinkSource).sk : undefined] as const;
    }),
  ];
  const found = externallyReachableHost(host, publicUrl) === undefined ? warning : failed;
  return chosen.flatMap(([path, secret]) => {
    const why = secret === undefined || PLACEHOLDER.test(secret) ? undefined : findWeakness(secret);
    return why === undefined ? [] : [found(path, why)];
  });
}

/** Placeholders that examples use for values from the console. */
const PLACEHOLDER =
  /^(?:<.*>|\[.*\]|\{.*\}|\$.*|x{2,}|\*{2,}|\.{2,}|…|\?+|.*\b(?:your|change[-_ ]?me|replace|placeholder|example|dummy|todo)\b.*|(?:your|change|replace).+|(?:access|secret|api)[-_ ]?key|agent[-_ ]?id|ak|sk)$/i;

function checkPlaceholders({ agents, xiaoyi }: CheckedConfig): readonly Check[] {
  const values = [
    ...xiaoyi.http.flatMap(({ ak, apiKey, oauth, sk }, index) => {
      const found = { ak, sk, apiKey, "oauth.clientId": oauth?.clientId, "oauth.clientSecret": oauth?.clientSecret };
      return prefixPaths(`xiaoyi.http[${index}]`, found);
    }),
    ...xiaoyi.links.flatMap(({ agentId, ak, apiKey, sk, uid }, index) =>
      prefixPaths(`xiaoyi.links[${index}]`, { agentId, ak, sk, uid, apiKey }),
    ),
    ...[...agents].flatMap(([name, { kind, source }]) =>
      kind === "link"
        ? prefixPaths(`agents.${name}.link`, { agentId: source.agentId, ak: source.ak, sk: source.sk })
        : [],
    ),
  ];
  const found = values.filter(([, value]) => value !== undefined && PLACEHOLDER.test(value.trim()));
  return found.map(([path]) => failed(path, "is a placeholder: replace it with the value from the console"));
}

function prefixPaths(path: string, values: Readonly<Record<string, string | undefined>>) {
  return Object.entries(values).map(([name, value]) => [`${path}.${name}`, value] as const);
}

function checkKeyInQuery({ query }: XiaoyiHttpConfig, path: string): readonly Check[] {
  if (query === undefined) return [];
  return [warning(`${path}.query`, "puts the key into addresses, which end up in the logs of proxies")];
}

/** If a credential matches two entries, the first one determines the owner of the tasks. */
function checkDuplicateCallers(http: readonly XiaoyiHttpConfig[]): readonly Check[] {
  const known = new Map<string, number>();
  return http.flatMap(({ agent, ak, apiKey, oauth }, index) => {
    const key = JSON.stringify([agent, ak, apiKey, oauth?.clientId]);
    const first = known.get(key);
    if (first !== undefined)
      return [warning(`xiaoyi.http[${index}]`, `is the same caller of "${agent}" as xiaoyi.http[${first}]`)];
    known.set(key, index);
    return [];
  });
}

function checkBackup({ backup, url }: XiaoyiLinkConfig, path: string): readonly Check[] {
  if (backup === undefined) return [];
  if (backup.insecure === true) {
    const detail = "accepts any certificate: anyone on the network path can read everything and use the credentials";
    return [failed(`${path}.insecure`, detail)];
  }
  const host = hostNameOf(new URL(backup.url).hostname);
  if (isIP(host) === 0 || isLoopback(host) || backup.fingerprint !== undefined) return [];
  const expected = backup.servername ?? new URL(url).hostname;
  const detail = `is an address that any certificate for ${expected} will do for; pin the one it has with fingerprint`;
  return [warning(`${path}.url`, detail)];
}

/** The platform accepts one link per agent at a time. */
function checkDuplicateAgents(links: readonly XiaoyiLinkConfig[]): readonly Check[] {
  try {
    checkDuplicateLinks(links);
  } catch (error) {
    return [failed("xiaoyi.links", messageOf(error))];
  }
  const ids = links.map(({ agentId }) => agentId);
  return links.flatMap((entry, index) => {
    const first = ids.indexOf(entry.agentId);
    if (first === index) return [];
    const [{ url }] = linkServersOf(entry);
    const detail = `is that of xiaoyi.links[${first}], too; at ${new URL(url).host} that must be another agent`;
    return [warning(`xiaoyi.links[${index}].agentId`, detail)];
  });
}

const CREDENTIAL_PATH =
  /^(?:xiaoyi\.(?:http|links)\[\d+\]\.(?:.+\.)?(?:ak|sk|apiKey|clientSecret)|agents\..+\.link\.(?:ak|sk))$/;

/** Anyone who can read the file or its history has the credentials. */
function checkPlainCredentials({ findOrigins }: CheckedConfig): readonly Check[] {
  const written = [...findOrigins()].filter(
    ([path, { variables }]) => variables.length === 0 && CREDENTIAL_PATH.test(path),
  );
  return written.map(([path]) => {
    const variable = `XIAOYI_${path.slice(path.lastIndexOf(".") + 1).toUpperCase()}`;
    return warning(path, `is written in the configuration: take it from the environment, e.g. as \${${variable}}`);
  });
}

function checkFileHosts({ xiaoyi: { files } }: CheckedConfig): readonly Check[] {
  if (files.allowHosts.length === 0) return [];
  return [warning("xiaoyi.files.allowHosts", "lets messages make this server fetch from the inside network")];
}

const DIAL_MS = 5_000;
const PING = { everyMs: 30_000, deadlineMs: 10_000 };

/**
 * Whether the platform accepts the keys of each link, which only opening a connection shows. Runs only on request,
 * because it closes the agent's existing connection. Being offline is not a configuration error.
 */
export async function checkLinks(links: readonly DialledEntry[], online: boolean): Promise<readonly Check[]> {
  if (links.length === 0) return [];
  if (!online) {
    return [skipped("xiaoyi.links", "the platform was not asked whether it accepts the keys; --online does")];
  }
  const checks: Check[] = [];
  for (const [index, entry] of links.entries()) checks.push(await checkLink(entry, `xiaoyi.links[${index}]`));
  return checks;
}

async function checkLink(entry: DialledEntry, name: string): Promise<Check> {
  const [{ tls, url }] = linkServersOf(entry);
  const { host } = new URL(url);
  try {
    const headers = dialHeaders(entry, systemClock.now());
    const options = { clock: systemClock, headers, connectTimeoutMs: DIAL_MS, ping: PING, tls };
    const link = await dialWebSocket(url, options);
    link.terminate("Only the keys were to be checked.");
    await link.closed;
    return ok(name, `${host} accepts the keys`);
  } catch (error) {
    if (!(error instanceof DialError)) return failed(name, messageOf(error));
    if (error.failure === "refused") return failed(name, `${host} ${REFUSALS.get(error.status) ?? error.message}`);
    if (error.failure === "certificate") return failed(name, `${host} has no valid certificate: ${error.message}`);
    return skipped(name, `${host} could not be reached: ${error.message}`);
  }
}

const REFUSALS: ReadonlyMap<number | undefined, string> = new Map([
  [401, "refuses ak and sk (401); are they right, and is this machine's clock?"],
  [403, "refuses the agent (403); is agentId right, and does it belong to ak?"],
]);

const WINDOW_MINUTES = SIGNATURE_WINDOW_MS / 60_000;

function checkClock(now: number): Check {
  const time = new Date(now).toISOString();
  return ok("xiaoyi clock", `signatures are valid within ${WINDOW_MINUTES} minutes of the time, which here is ${time}`);
}
