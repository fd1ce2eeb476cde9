import { isLoopback } from "../loopback.ts";
import { nearest } from "./nearest.ts";
import type { Path } from "./problems.ts";
import { AGENT_KINDS, EXEC_ONLY } from "./schema.ts";
import { unavailableFeature } from "./unavailable.ts";

export interface Finding {
  readonly path: Path;
  readonly message: string;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * What one key demands of another. Read from the values as they are written, not as they were parsed, so that these
 * are reported together with whatever else is wrong.
 */
export function brokenRules(values: unknown): readonly Finding[] {
  const root = fieldsOf(values);
  const agents = fieldsOf(root.agents);
  return [
    ...Object.entries(agents).flatMap(([name, agent]) => kindOf(name, agent)),
    ...missingAgents(root, agents),
    ...openHost(root),
    ...certificates(root),
    ...repeatedKeys(root),
  ];
}

function kindOf(name: string, value: unknown): readonly Finding[] {
  if (!isFields(value)) return [];
  const path = ["agents", name];
  const given = AGENT_KINDS.filter((kind) => value[kind] !== undefined);
  const later = Object.keys(value).some((key) => unavailableFeature([...path, key]) !== undefined);
  const findings: Finding[] = [];
  if (given.length === 0 && !later) findings.push({ path, message: `needs one of ${AGENT_KINDS.join(", ")}` });
  if (given.length > 1) findings.push({ path, message: `has ${given.join(" and ")}; an agent is only one of them` });
  if (given.length === 1 && given[0] !== "exec") {
    for (const key of EXEC_ONLY) {
      if (value[key] !== undefined) findings.push({ path: [...path, key], message: "has a meaning only beside exec" });
    }
  }
  return findings;
}

function missingAgents(root: Fields, agents: Fields): readonly Finding[] {
  const names = Object.keys(agents);
  if (isFields(root.agents) && names.length === 0) return [{ path: ["agents"], message: "needs at least one agent" }];
  if (typeof root.default !== "string" || names.length === 0 || Object.hasOwn(agents, root.default)) return [];
  const meant = nearest(root.default, names);
  const hint = meant === undefined ? `the agents are ${names.join(", ")}` : `did you mean "${meant}"?`;
  return [{ path: ["default"], message: `there is no agent "${root.default}"; ${hint}` }];
}

function openHost(root: Fields): readonly Finding[] {
  const { host } = fieldsOf(root.server);
  const auth = fieldsOf(root.auth);
  if (typeof host !== "string" || isLoopback(host) || auth.anonymous === true) return [];
  if (IDENTIFYING.some((key) => isFields(auth[key]) || listOf(auth[key]).length > 0)) return [];
  const message = `"${host}" can be reached from other machines; write in auth who may call, or auth: { anonymous: true } to let anyone`;
  return [{ path: ["server", "host"], message }];
}

/** Any of them lets callers show who they are. */
const IDENTIFYING = ["apiKeys", "basic", "jwt", "mtls"] as const;

/** Client certificates need TLS, and one set of authorities. */
function certificates(root: Fields): readonly Finding[] {
  const { tls } = fieldsOf(root.server);
  const hasMtls = isFields(fieldsOf(root.auth).mtls);
  const findings: Finding[] = [];
  if (hasMtls && !isFields(tls)) findings.push({ path: ["auth", "mtls"], message: "needs server.tls" });
  const { ca, requestClientCertificate } = fieldsOf(tls);
  const path = ["server", "tls", "ca"];
  if (ca !== undefined && hasMtls) findings.push({ path, message: "auth.mtls.ca stands for it" });
  else if (ca !== undefined && requestClientCertificate !== true) {
    findings.push({ path, message: "has a meaning only beside requestClientCertificate" });
  }
  return findings;
}

/** One key cannot have two owners. */
function repeatedKeys(root: Fields): readonly Finding[] {
  const keys = listOf(fieldsOf(root.auth).apiKeys).map((entry) => fieldsOf(entry).key);
  return keys.flatMap((key, at) =>
    typeof key === "string" && keys.indexOf(key) < at
      ? [{ path: ["auth", "apiKeys", at, "key"], message: "is the same as another one" }]
      : [],
  );
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}
