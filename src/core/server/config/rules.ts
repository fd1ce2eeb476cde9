import { type Fields, fieldsOf, isObject, listOf } from "../../model/json.ts";
import type { Finding } from "../../yaml/problems.ts";
import { externallyReachableHost } from "../access/loopback.ts";
import { checkAgentRules } from "./agent-kinds.ts";
import { checkAgentExists } from "./problems.ts";
import { checkSections } from "./sections.ts";

/**
 * Rules between keys. Checked on the raw values, not the parsed ones, so that violations are reported together with all
 * other problems.
 */
export function checkRules(values: unknown): readonly Finding[] {
  const root = fieldsOf(values);
  const agents = fieldsOf(root.agents);
  return [
    ...Object.entries(agents).flatMap(([name, agent]) => checkAgentRules(name, agent, agents)),
    ...checkDefaultAgent(root, agents),
    ...checkPublicHost(root),
    ...checkCertificates(root),
    ...checkDuplicateKeys(root),
    ...checkSections(root, agents),
    ...checkUnusedKeyPlaces(root),
  ];
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
