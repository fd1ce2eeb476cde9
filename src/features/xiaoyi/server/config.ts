/** The Xiaoyi configuration: its types, its rules, how it is displayed and which values are secret. */

import { z } from "zod";
import type { AgentKind, ConfigSection } from "../../../core/extension/contract.ts";
import { formatDuration } from "../../../core/model/duration.ts";
import { type Fields, fieldsOf, isObject, listOf } from "../../../core/model/json.ts";
import type { DragomanConfig } from "../../../core/server/config/config.ts";
import { checkAgentExists } from "../../../core/server/config/problems.ts";
import { membersOf, type ShownValues } from "../../../core/server/config/shown-values.ts";
import type { Finding, Path } from "../../../core/yaml/problems.ts";
import { formatSize } from "../../../core/yaml/value-types.ts";
import { DIAL_IN_CREDENTIALS, dialIn, HTTP_ACCESS, xiaoyi } from "./config-schema.ts";
import { createDialInAgent, type DialInCredentials } from "./dial-in-agent.ts";
import type { XiaoyiOptions } from "./open-xiaoyi.ts";
import type { XiaoyiPushOptions } from "./phone-services.ts";

type ParsedXiaoyi = z.output<typeof xiaoyi>;

export type XiaoyiConfig = ReturnType<typeof toXiaoyiConfig>;

/** Of a whole configuration. */
export const xiaoyiOf = ({ sections }: Pick<DragomanConfig, "sections">): XiaoyiConfig =>
  sections.xiaoyi as XiaoyiConfig;

function toXiaoyiConfig({ files, http, links }: ParsedXiaoyi) {
  const { keep, quota, timeout, ...rest } = files;
  return {
    http: http.map(({ push, sessionTtl, ...entry }) => ({ ...entry, sessionTtlMs: sessionTtl, ...toPhonePush(push) })),
    links: links.map(({ heartbeat, push, reconnect: { first, longest, stableAfter, tries }, ...entry }) => ({
      ...entry,
      heartbeatMs: heartbeat,
      reconnect: { baseMs: first, capMs: longest, maxTries: tries, resetAfterMs: stableAfter },
      ...toPhonePush(push),
    })),
    files: { ...rest, timeoutMs: timeout, quotaBytes: quota, keepMs: keep },
  };
}

function toPhonePush(push: ParsedXiaoyi["http"][number]["push"]): { readonly push?: XiaoyiPushOptions } {
  if (push === undefined) return {};
  const { spacing, ...rest } = push;
  return { push: { ...rest, spacingMs: spacing } };
}

function checkXiaoyi(section: Fields, agents: Fields): readonly Finding[] {
  const { http, links } = section;
  return [
    ...Object.entries(agents).flatMap(([name, agent]) => checkDialIn(name, fieldsOf(agent).link)),
    ...checkDuplicateDialIns(agents),
    ...listOf(http).flatMap((entry, index) => checkXiaoyiHttp(fieldsOf(entry), agents, ["xiaoyi", "http", index])),
    ...listOf(links).flatMap((entry, index) => checkXiaoyiLink(fieldsOf(entry), agents, ["xiaoyi", "links", index])),
  ];
}

function checkXiaoyiLink(entry: Fields, agents: Fields, path: Path): readonly Finding[] {
  const findings = [...checkAgentExists(entry.agent, agents, [...path, "agent"])];
  findings.push(...checkPair(entry, "uid", "apiKey", path), ...checkXiaoyiPush(entry, path));
  const backup = fieldsOf(entry.backup);
  const given = ["servername", "fingerprint", "insecure"].filter((key) => backup[key] !== undefined);
  if (given.length > 1) {
    findings.push({ path: [...path, "backup"], message: `has ${given.join(" and ")}; one of them decides` });
  }
  return findings;
}

function checkXiaoyiHttp(entry: Fields, agents: Fields, path: Path): readonly Finding[] {
  const findings = [...checkAgentExists(entry.agent, agents, [...path, "agent"])];
  const given = HTTP_ACCESS.filter((key) => entry[key] !== undefined);
  if (given.length === 0) findings.push({ path, message: "needs ak with sk, apiKey, or oauth" });
  if (given.length > 1) findings.push({ path, message: `has ${given.join(" and ")}; the platform uses one of them` });
  findings.push(...checkPair(entry, "ak", "sk", path), ...checkXiaoyiPush(entry, path));
  for (const key of ["header", "query"]) {
    if (entry[key] !== undefined && entry.apiKey === undefined) {
      findings.push({ path: [...path, key], message: "has a meaning only beside apiKey" });
    }
  }
  return findings;
}

function checkPair(fields: Fields, one: string, other: string, path: Path): readonly Finding[] {
  const isPair = (fields[one] === undefined) === (fields[other] === undefined);
  return isPair ? [] : [{ path, message: `needs both of ${one} and ${other}, or neither` }];
}

/** Notifications are signed, however the platform authenticates. */
function checkXiaoyiPush(entry: Fields, entryPath: Path): readonly Finding[] {
  if (entry.push === undefined) return [];
  const push = fieldsOf(entry.push);
  const path = [...entryPath, "push"];
  const findings = checkPair(push, "ak", "sk", path);
  if (findings.length > 0) return findings;
  return (push.sk ?? entry.sk) === undefined ? [{ path, message: "needs ak and sk" }] : [];
}

/** An agent that dials in authenticates by a signature or an API key; both may be allowed. */
function checkDialIn(name: string, link: unknown): readonly Finding[] {
  if (!isObject(link)) return [];
  const path = ["agents", name, "link"];
  const given = DIAL_IN_CREDENTIALS.filter((pair) => pair.some((key) => link[key] !== undefined));
  if (given.length === 0) return [{ path, message: "needs ak and sk, or uid and apiKey" }];
  const missing = given.flatMap((pair) => pair.filter((key) => link[key] === undefined));
  return missing.map((key) => ({ path: [...path, key], message: "is required" }));
}

/** An agent that dials in is identified by its id. */
function checkDuplicateDialIns(agents: Fields): readonly Finding[] {
  const known = new Map<unknown, string>();
  return Object.entries(agents).flatMap(([name, agent]) => {
    const { agentId } = fieldsOf(fieldsOf(agent).link);
    const other = known.get(agentId);
    if (agentId === undefined) return [];
    if (other === undefined) known.set(agentId, name);
    const path = ["agents", name, "link", "agentId"];
    return other === undefined ? [] : [{ path, message: `"${other}" dials in with this id, too` }];
  });
}

function* xiaoyiValues({ files, http, links }: XiaoyiConfig): ShownValues {
  for (const [index, { account, oauth, push, sessionTtlMs, upload, ...rest }] of http.entries()) {
    const path = `xiaoyi.http[${index}]`;
    yield* membersOf(path, rest);
    yield* membersOf(`${path}.oauth`, oauth);
    yield* membersOf(`${path}.account`, account);
    yield [`${path}.sessionTtl`, formatDuration(sessionTtlMs)];
    yield* phonePushValues(path, push);
    yield* membersOf(`${path}.upload`, upload);
  }
  for (const [index, { backup, heartbeatMs, push, reconnect, ...rest }] of links.entries()) {
    const path = `xiaoyi.links[${index}]`;
    yield* membersOf(path, rest);
    yield* membersOf(`${path}.backup`, backup);
    yield [`${path}.heartbeat`, formatDuration(heartbeatMs)];
    yield* membersOf(`${path}.reconnect`, {
      first: formatDuration(reconnect.baseMs),
      longest: formatDuration(reconnect.capMs),
      tries: reconnect.maxTries,
      stableAfter: formatDuration(reconnect.resetAfterMs),
    });
    yield* phonePushValues(path, push);
  }
  if (http.length + links.length === 0) return;
  yield* membersOf("xiaoyi.files", {
    maxBytes: formatSize(files.maxBytes),
    timeout: formatDuration(files.timeoutMs),
    allowHosts: files.allowHosts,
    quota: formatSize(files.quotaBytes),
    keep: formatDuration(files.keepMs),
  });
}

function* phonePushValues(path: string, push: XiaoyiPushOptions | undefined): ShownValues {
  if (push === undefined) return;
  const { spacingMs, ...rest } = push;
  yield* membersOf(`${path}.push`, rest);
  if (spacingMs !== undefined) yield [`${path}.push.spacing`, formatDuration(spacingMs)];
}

/** Values that are redacted in logs. */
function secretsOfXiaoyi({ http = [], links = [] }: XiaoyiOptions): readonly string[] {
  const given = [
    ...http.flatMap(({ sk, apiKey, oauth, account, upload }) => [
      sk,
      apiKey,
      oauth?.clientSecret,
      upload?.apiKey,
      typeof account === "object" ? account.clientSecret : undefined,
    ]),
    ...links.flatMap(({ sk, apiKey }) => [sk, apiKey]),
    ...[...http, ...links].map((entry) => entry.push?.sk),
  ];
  return given.filter((secret) => secret !== undefined);
}

/** The contents of the options are validated where they are used. */
export const xiaoyiSection: ConfigSection<ParsedXiaoyi, XiaoyiConfig> = {
  schema: xiaoyi,
  options: z.record(z.string(), z.unknown()),
  toConfig: toXiaoyiConfig,
  check: (section, agents) => checkXiaoyi(fieldsOf(section), agents),
  shown: xiaoyiValues,
  secrets: secretsOfXiaoyi,
};

export interface LinkSource extends DialInCredentials {
  readonly patienceMs?: number;
}

export const linkKind: AgentKind<LinkSource> = {
  keys: { link: dialIn },
  toSource({ link }) {
    const { patience, ...credentials } = link as DialInCredentials & { readonly patience?: number };
    return { ...credentials, ...(patience !== undefined && { patienceMs: patience }) };
  },
  build(source, { name, overrides: { timeoutMs, ...overrides } }) {
    const about = { name, description: "An agent that dials in.", ...overrides };
    return createDialInAgent({ ...about, ...(timeoutMs !== undefined && { timeout: timeoutMs }), ...source });
  },
  appliesOverrides: true,
  isFixed: true,
  summary: ({ agentId }) => `link: ${agentId}`,
  *shown(path, { patienceMs, ...credentials }) {
    yield* membersOf(`${path}.link`, { ...credentials });
    if (patienceMs !== undefined) yield [`${path}.link.patience`, formatDuration(patienceMs)];
  },
  secrets: ({ apiKey, sk }) => [sk, apiKey].filter((secret) => secret !== undefined),
};
