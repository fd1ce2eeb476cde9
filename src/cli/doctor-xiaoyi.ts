/** What would make conversations with Xiaoyi's phones unsafe, or keep them from ever beginning. */
import { isIP } from "node:net";
import { SIGNATURE_WINDOW_MS } from "../dialects/xiaoyi/signature.ts";
import type { DragomanConfig } from "../server/config/index.ts";
import { hostNameOf, isLoopback, reachedBy } from "../server/loopback.ts";
import { refuseDoubles, serversOf } from "../server/xiaoyi/link-servers.ts";
import { type Check, messageOf } from "./doctor-checks.ts";
import { weakness } from "./doctor-security.ts";

type Looked = Pick<DragomanConfig, "agents" | "origins" | "server" | "xiaoyi">;
type XiaoyiHttpConfig = DragomanConfig["xiaoyi"]["http"][number];
type XiaoyiLinkConfig = DragomanConfig["xiaoyi"]["links"][number];

/** Nothing where Xiaoyi is not spoken. */
export function checkXiaoyi(config: Looked, now: number): readonly Check[] {
  const { http, links } = config.xiaoyi;
  const findings = [
    ...reachOf(config),
    ...weakSecrets(config),
    ...http.flatMap((entry, index) => httpOf(entry, `xiaoyi.http[${index}]`)),
    ...sameCallers(http),
    ...links.flatMap((entry, index) => backupOf(entry, `xiaoyi.links[${index}].backup`)),
    ...sameAgents(links),
    ...writtenOut(config),
    ...filesOf(config),
  ];
  const isSigning = links.length > 0 || http.some(({ push, sk }) => (push ?? sk) !== undefined);
  if (isSigning) findings.push(clockOf(now));
  return findings;
}

const warning = (name: string, detail: string): Check => ({ name, status: "warning", detail });
const failed = (name: string, detail: string): Check => ({ name, status: "failed", detail });

const REACHED_PORTS: ReadonlySet<string> = new Set(["", "80", "443"]);

/** The platform calls the address that was typed into its console, and gives up without a word. */
function reachOf({ server: { host, publicUrl }, xiaoyi }: Looked): readonly Check[] {
  const name = "xiaoyi.http";
  if (xiaoyi.http.length === 0) return [];
  if (reachedBy(host, publicUrl) === undefined) return [warning(name, "only this machine can reach the server")];
  if (publicUrl === undefined) return [warning(name, "say in server.publicUrl where the platform reaches the server")];
  const { port, protocol } = new URL(publicUrl);
  if (protocol !== "https:") return [failed(name, `the platform calls https only: ${publicUrl}`)];
  return REACHED_PORTS.has(port) ? [] : [failed(name, `the platform reaches ports 80 and 443 only: ${publicUrl}`)];
}

/** Those that are chosen here: the keys of links are made by the platform. Sessions are sealed with those of http, too. */
function weakSecrets({ agents, server: { host, publicUrl }, xiaoyi }: Looked): readonly Check[] {
  const chosen = [
    ...xiaoyi.http.flatMap(({ apiKey, oauth, sk }, index) => [
      [`xiaoyi.http[${index}].sk`, sk] as const,
      [`xiaoyi.http[${index}].apiKey`, apiKey] as const,
      [`xiaoyi.http[${index}].oauth.clientSecret`, oauth?.clientSecret] as const,
    ]),
    ...[...agents].map(([name, { source }]) => {
      return [`agents.${name}.link.sk`, source.kind === "link" ? source.sk : undefined] as const;
    }),
  ];
  const found = reachedBy(host, publicUrl) === undefined ? warning : failed;
  return chosen.flatMap(([path, secret]) => {
    const why = secret === undefined ? undefined : weakness(secret);
    return why === undefined ? [] : [found(path, why)];
  });
}

function httpOf({ query }: XiaoyiHttpConfig, path: string): readonly Check[] {
  if (query === undefined) return [];
  return [warning(`${path}.query`, "puts the key into addresses, which end up in the logs of proxies")];
}

/** Of two entries that one proof fits, the first decides whose the tasks are. */
function sameCallers(http: readonly XiaoyiHttpConfig[]): readonly Check[] {
  const known = new Map<string, number>();
  return http.flatMap(({ agent, ak, apiKey, oauth }, index) => {
    const key = JSON.stringify([agent, ak, apiKey, oauth?.clientId]);
    const first = known.get(key);
    if (first === undefined) known.set(key, index);
    if (first === undefined) return [];
    return [warning(`xiaoyi.http[${index}]`, `is the same caller of "${agent}" as xiaoyi.http[${first}]`)];
  });
}

function backupOf({ backup, url }: XiaoyiLinkConfig, path: string): readonly Check[] {
  if (backup === undefined) return [];
  if (backup.insecure === true) {
    const detail = "accepts any certificate: whoever stands in between reads everything, and can use the credentials";
    return [failed(`${path}.insecure`, detail)];
  }
  const host = hostNameOf(new URL(backup.url).hostname);
  if (isIP(host) === 0 || isLoopback(host) || backup.fingerprint !== undefined) return [];
  const expected = backup.servername ?? new URL(url).hostname;
  const detail = `is an address that any certificate for ${expected} will do for; pin the one it has with fingerprint`;
  return [warning(`${path}.url`, detail)];
}

/** The platform takes one link of an agent at a time. */
function sameAgents(links: readonly XiaoyiLinkConfig[]): readonly Check[] {
  try {
    refuseDoubles(links);
  } catch (error) {
    return [failed("xiaoyi.links", messageOf(error))];
  }
  const ids = links.map(({ agentId }) => agentId);
  return links.flatMap((entry, index) => {
    const first = ids.indexOf(entry.agentId);
    if (first === index) return [];
    const [{ url }] = serversOf(entry);
    const detail = `is that of xiaoyi.links[${first}], too; at ${new URL(url).host} that must be another agent`;
    return [warning(`xiaoyi.links[${index}].agentId`, detail)];
  });
}

const CREDENTIAL_PATH =
  /^(?:xiaoyi\.(?:http|links)\[\d+\]\.(?:.+\.)?(?:ak|sk|apiKey|clientSecret)|agents\..+\.link\.(?:ak|sk))$/;

/** Whoever reads the file, or its history, has them. */
function writtenOut({ origins }: Looked): readonly Check[] {
  const written = [...origins].filter(([path, { variables }]) => variables.length === 0 && CREDENTIAL_PATH.test(path));
  return written.map(([path]) => {
    const variable = `XIAOYI_${path.slice(path.lastIndexOf(".") + 1).toUpperCase()}`;
    return warning(path, `is written in the configuration: take it from the environment, e.g. as \${${variable}}`);
  });
}

function filesOf({ xiaoyi: { files } }: Looked): readonly Check[] {
  if (files.allowHosts.length === 0) return [];
  return [warning("xiaoyi.files.allowHosts", "lets messages make this server fetch from the inside network")];
}

const WINDOW_MINUTES = SIGNATURE_WINDOW_MS / 60_000;

function clockOf(now: number): Check {
  const time = new Date(now).toISOString();
  const detail = `signatures are good for ${WINDOW_MINUTES} minutes around the time, which here is ${time}`;
  return { name: "xiaoyi clock", status: "ok", detail };
}
