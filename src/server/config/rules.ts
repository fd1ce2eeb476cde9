import { isObject } from "../../model/json.ts";
import { closestMatch } from "../../model/suggestions.ts";
import { externallyReachableHost } from "../access/loopback.ts";
import { type Path, unavailableFeature } from "./problems.ts";
import { AGENT_KINDS, EXEC_ONLY, MODULE_ONLY, TCK_ONLY } from "./schema.ts";
import { DIAL_IN_CREDENTIALS, HTTP_ACCESS } from "./schema-xiaoyi.ts";

export interface Finding {
  readonly path: Path;
  readonly message: string;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * What one key demands of another. Read from the values as they are written, not as they were parsed, so that these
 * are reported together with whatever else is wrong.
 */
export function checkRules(values: unknown): readonly Finding[] {
  const root = fieldsOf(values);
  const agents = fieldsOf(root.agents);
  return [
    ...Object.entries(agents).flatMap(([name, agent]) => checkAgentKind(name, agent)),
    ...Object.entries(agents).flatMap(([name, agent]) => checkDialIn(name, fieldsOf(agent).link)),
    ...checkDuplicateDialIns(agents),
    ...checkDefaultAgent(root, agents),
    ...checkPublicHost(root),
    ...checkCertificates(root),
    ...checkDuplicateKeys(root),
    ...checkXiaoyi(root, agents),
    ...checkUnusedKeyPlaces(root),
  ];
}

function checkAgentKind(name: string, value: unknown): readonly Finding[] {
  if (!isObject(value)) return [];
  const path = ["agents", name];
  const given = AGENT_KINDS.filter((kind) => value[kind] !== undefined);
  const later = Object.keys(value).some((key) => unavailableFeature([...path, key]) !== undefined);
  const findings: Finding[] = [];
  if (given.length === 0 && !later) findings.push({ path, message: `needs one of ${AGENT_KINDS.join(", ")}` });
  if (given.length > 1) findings.push({ path, message: `has ${given.join(" and ")}; an agent is only one of them` });
  const misplaced = (keys: readonly string[], beside: string) =>
    keys
      .filter((key) => value[key] !== undefined)
      .map((key) => ({ path: [...path, key], message: `has a meaning only beside ${beside}` }));
  if (given.length === 1 && given[0] !== "exec") findings.push(...misplaced(EXEC_ONLY, "exec"));
  if (given.length === 1 && given[0] !== "module") findings.push(...misplaced(MODULE_ONLY, "module"));
  if (given.length === 1 && value.use !== "tck") findings.push(...misplaced(TCK_ONLY, "use: tck"));
  return findings;
}

/** An agent that dials in proves itself by a signature or by a key, and may be allowed both. */
function checkDialIn(name: string, link: unknown): readonly Finding[] {
  if (!isObject(link)) return [];
  const path = ["agents", name, "link"];
  const given = DIAL_IN_CREDENTIALS.filter((pair) => pair.some((key) => link[key] !== undefined));
  if (given.length === 0) return [{ path, message: "needs ak and sk, or uid and apiKey" }];
  const missing = given.flatMap((pair) => pair.filter((key) => link[key] === undefined));
  return missing.map((key) => ({ path: [...path, key], message: "is needed" }));
}

/** An agent that dials in is known by its id. */
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

function checkDefaultAgent(root: Fields, agents: Fields): readonly Finding[] {
  const names = Object.keys(agents);
  if (isObject(root.agents) && names.length === 0) return [{ path: ["agents"], message: "needs at least one agent" }];
  return checkAgentExists(root.default, agents, ["default"]);
}

function checkAgentExists(name: unknown, agents: Fields, path: Path): readonly Finding[] {
  const names = Object.keys(agents);
  if (typeof name !== "string" || names.length === 0 || Object.hasOwn(agents, name)) return [];
  const meant = closestMatch(name, names);
  const hint = meant === undefined ? `the agents are ${names.join(", ")}` : `did you mean "${meant}"?`;
  return [{ path, message: `there is no agent "${name}"; ${hint}` }];
}

function checkXiaoyi(root: Fields, agents: Fields): readonly Finding[] {
  const { http, links } = fieldsOf(root.xiaoyi);
  return [
    ...listOf(http).flatMap((entry, index) => checkXiaoyiHttp(fieldsOf(entry), agents, ["xiaoyi", "http", index])),
    ...listOf(links).flatMap((entry, index) => checkXiaoyiLink(fieldsOf(entry), agents, ["xiaoyi", "links", index])),
  ];
}

function checkXiaoyiLink(entry: Fields, agents: Fields, path: Path): readonly Finding[] {
  const findings = [...checkAgentExists(entry.agent, agents, [...path, "agent"])];
  if ((entry.uid === undefined) !== (entry.apiKey === undefined)) {
    findings.push({ path, message: "needs both of uid and apiKey, or neither" });
  }
  findings.push(...checkXiaoyiPush(entry, path));
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
  if ((entry.ak === undefined) !== (entry.sk === undefined)) {
    findings.push({ path, message: "needs both of ak and sk, or neither" });
  }
  findings.push(...checkXiaoyiPush(entry, path));
  for (const key of ["header", "query"]) {
    if (entry[key] !== undefined && entry.apiKey === undefined) {
      findings.push({ path: [...path, key], message: "has a meaning only beside apiKey" });
    }
  }
  return findings;
}

/** Notifications are signed, whatever the platform proves itself by. */
function checkXiaoyiPush(entry: Fields, path: Path): readonly Finding[] {
  if (entry.push === undefined) return [];
  const push = fieldsOf(entry.push);
  if ((push.ak === undefined) !== (push.sk === undefined)) {
    return [{ path: [...path, "push"], message: "needs both of ak and sk, or neither" }];
  }
  return (push.sk ?? entry.sk) === undefined ? [{ path: [...path, "push"], message: "needs ak and sk" }] : [];
}

function checkPublicHost(root: Fields): readonly Finding[] {
  const { host = "localhost", publicUrl } = fieldsOf(root.server);
  const auth = fieldsOf(root.auth);
  if (typeof host !== "string" || auth.anonymous === true) return [];
  if (IDENTIFYING.some((key) => isObject(auth[key]) || listOf(auth[key]).length > 0)) return [];
  const reached = externallyReachableHost(
    host,
    typeof publicUrl === "string" && /^https?:[^@]*$/.test(publicUrl) ? publicUrl : undefined,
  );
  if (reached === undefined) return [];
  const message = `"${reached}" can be reached from other machines; write in auth who may call, or auth: { anonymous: true } to let anyone`;
  return [{ path: ["server", reached === host ? "host" : "publicUrl"], message }];
}

/** Any of them lets callers show who they are. */
const IDENTIFYING = ["apiKeys", "basic", "jwt", "mtls"] as const;

/** Client certificates need TLS, and one set of authorities. */
function checkCertificates(root: Fields): readonly Finding[] {
  const { tls } = fieldsOf(root.server);
  const hasMtls = isObject(fieldsOf(root.auth).mtls);
  const findings: Finding[] = [];
  if (hasMtls && !isObject(tls)) findings.push({ path: ["auth", "mtls"], message: "needs server.tls" });
  const { ca, requestClientCertificate } = fieldsOf(tls);
  const path = ["server", "tls", "ca"];
  if (ca !== undefined && hasMtls) findings.push({ path, message: "auth.mtls.ca stands for it" });
  else if (ca !== undefined && requestClientCertificate !== true) {
    findings.push({ path, message: "has a meaning only beside requestClientCertificate" });
  }
  return findings;
}

/** One key cannot have two owners. */
function checkDuplicateKeys(root: Fields): readonly Finding[] {
  const keys = listOf(fieldsOf(root.auth).apiKeys).map((entry) => fieldsOf(entry).key);
  return keys.flatMap((key, at) =>
    typeof key === "string" && keys.indexOf(key) < at
      ? [{ path: ["auth", "apiKeys", at, "key"], message: "is the same as another one" }]
      : [],
  );
}

/** Where keys stand says nothing where there are none, and whoever writes it means to have some. */
function checkUnusedKeyPlaces(root: Fields): readonly Finding[] {
  const { apiKey, apiKeys } = fieldsOf(root.auth);
  const isForgotten =
    apiKey !== undefined && (apiKeys === undefined || (Array.isArray(apiKeys) && apiKeys.length === 0));
  return isForgotten ? [{ path: ["auth", "apiKey"], message: "has a meaning only beside apiKeys" }] : [];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}
