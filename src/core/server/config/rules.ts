import { CREDENTIAL_KINDS, REMOTE_ONLY } from "../../../features/gateway/config-schema.ts";
import { parseReference } from "../../../features/registry/client/reference.ts";
import { WRITER_NAMES } from "../../agents/builtin-names.ts";
import { type Fields, fieldsOf, isObject, listOf } from "../../model/json.ts";
import type { Finding } from "../../yaml/problems.ts";
import { externallyReachableHost } from "../access/loopback.ts";
import { checkAgentExists, unavailableFeature } from "./problems.ts";
import { AGENT_KINDS, EXEC_ONLY, MODULE_ONLY, TCK_ONLY } from "./schema.ts";
import { checkSections } from "./sections.ts";

/**
 * Rules between keys. Checked on the raw values, not the parsed ones, so that violations are reported together with all
 * other problems.
 */
export function checkRules(values: unknown): readonly Finding[] {
  const root = fieldsOf(values);
  const agents = fieldsOf(root.agents);
  return [
    ...Object.entries(agents).flatMap(([name, agent]) => [
      ...checkAgentRules(name, agent),
      ...checkCalledAgents(name, agent, agents),
    ]),
    ...checkDefaultAgent(root, agents),
    ...checkPublicHost(root),
    ...checkCertificates(root),
    ...checkDuplicateKeys(root),
    ...checkSections(root, agents),
    ...checkUnusedKeyPlaces(root),
  ];
}

/** Those between the keys of one agent. */
export function checkAgentRules(name: string, agent: unknown): readonly Finding[] {
  return [...checkAgentKind(name, agent), ...checkRemote(name, agent)];
}

function checkAgentKind(name: string, value: unknown): readonly Finding[] {
  if (!isObject(value)) return [];
  const path = ["agents", name];
  const isWriter = WRITER_NAMES.some((name) => name === value.use);
  const given = AGENT_KINDS.filter((kind) => value[kind] !== undefined && !(kind === "llm" && isWriter));
  const isUnavailable = () => Object.keys(value).some((key) => unavailableFeature([...path, key]) !== undefined);
  const findings: Finding[] = [];
  if (given.length === 0 && !isUnavailable())
    findings.push({ path, message: `needs one of ${AGENT_KINDS.join(", ")}` });
  if (given.length > 1) findings.push({ path, message: `has ${given.join(" and ")}; an agent is only one of them` });
  const misplaced = (keys: readonly string[], beside: string) =>
    keys
      .filter((key) => value[key] !== undefined)
      .map((key) => ({ path: [...path, key], message: `has a meaning only beside ${beside}` }));
  if (given.length === 1 && given[0] !== "exec") findings.push(...misplaced(EXEC_ONLY, "exec"));
  if (given.length === 1 && given[0] !== "module") findings.push(...misplaced(MODULE_ONLY, "module"));
  if (given.length === 1 && given[0] !== "remote") findings.push(...misplaced(REMOTE_ONLY, "remote"));
  if (given.length === 1 && value.use !== "tck") findings.push(...misplaced(TCK_ONLY, "use: tck"));
  if (given.length === 1 && value.use !== "tck" && given[0] !== "remote") {
    findings.push(...misplaced(["streaming"], "remote or use: tck"));
  }
  return findings;
}

/** One way to log in, with all that belongs to it. */
function checkRemote(name: string, agent: unknown): readonly Finding[] {
  const path = ["agents", name, "credentials"];
  const given = fieldsOf(agent);
  const { credentials, remote } = given;
  if (typeof remote === "string" && parseReference(remote) !== undefined) {
    return [...REMOTE_ONLY, "streaming"]
      .filter((key) => given[key] !== undefined)
      .map((key) => ({
        path: ["agents", name, key],
        message: "has a meaning only beside a URL: it is not known which agent the registry returns",
      }));
  }
  if (!isObject(credentials)) return [];
  const kinds = CREDENTIAL_KINDS.filter((kind) => credentials[kind] !== undefined);
  const { ak, apiKey, header, oauth, sk } = credentials;
  const findings: Finding[] = [];
  if (kinds.length === 0) findings.push({ path, message: `needs one of ${CREDENTIAL_KINDS.join(", ")}` });
  if (kinds.length > 1) findings.push({ path, message: `has ${kinds.join(" and ")}; only one of them can be used` });
  if (header !== undefined && apiKey === undefined) {
    findings.push({ path: [...path, "header"], message: "has a meaning only beside apiKey" });
  }
  if ((ak === undefined) !== (sk === undefined)) findings.push({ path, message: "needs both ak and sk" });
  if (isObject(oauth) && (oauth.tokenUrl === undefined) === (oauth.issuer === undefined)) {
    findings.push({ path: [...path, "oauth"], message: "needs either tokenUrl or issuer" });
  }
  return findings;
}

/** Those that a language model may call. A writer calls none. */
export function checkCalledAgents(name: string, value: unknown, agents: Fields): readonly Finding[] {
  const { llm, use } = fieldsOf(value);
  const path = ["agents", name, "llm", "agents"];
  const called = listOf(fieldsOf(llm).agents);
  if (use !== undefined && called.length > 0) return [{ path, message: `has no meaning beside use: ${use}` }];
  return called.flatMap((agent, at) =>
    agent === name
      ? [{ path: [...path, at], message: "an agent cannot call itself" }]
      : checkAgentExists(agent, agents, [...path, at]),
  );
}

function checkDefaultAgent(root: Fields, agents: Fields): readonly Finding[] {
  const names = Object.keys(agents);
  if (isObject(root.agents) && names.length === 0) return [{ path: ["agents"], message: "needs at least one agent" }];
  return checkAgentExists(root.default, agents, ["default"]);
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

/** Settings that let callers authenticate. */
const IDENTIFYING = ["apiKeys", "basic", "jwt", "mtls"] as const;

/** Client certificates require TLS, and one set of authorities. */
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

/** A location of API keys without any API keys is a mistake. */
function checkUnusedKeyPlaces(root: Fields): readonly Finding[] {
  const { apiKey, apiKeys } = fieldsOf(root.auth);
  const isForgotten =
    apiKey !== undefined && (apiKeys === undefined || (Array.isArray(apiKeys) && apiKeys.length === 0));
  return isForgotten ? [{ path: ["auth", "apiKey"], message: "has a meaning only beside apiKeys" }] : [];
}
