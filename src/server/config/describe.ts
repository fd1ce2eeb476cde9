import { formatDuration } from "../../model/duration.ts";
import { isSecretName, redactText } from "../logging/redact.ts";
import type { AgentConfig, DragomanConfig, Origin } from "./config.ts";
import { limits } from "./schema.ts";
import { sectionValues } from "./sections.ts";
import { type EffectiveScalar, formatSize, membersOf, type ShownValue, size, wait } from "./value-types.ts";

export interface EffectiveValue {
  readonly value: EffectiveScalar | readonly EffectiveScalar[];
  /** `default`, `command line`, or the position in the file, with the variables used in it. */
  readonly origin: string;
}

const REDACTED = "***";
const SECRET_NAME = /key|secret|token|passw|credential|auth|^(?:ak|sk)$|_(?:ak|sk)$/i;

/** Every effective value by its path in the file, with its origin; secrets are redacted. */
export function effectiveConfig(config: DragomanConfig): Readonly<Record<string, EffectiveValue>> {
  const shown: Record<string, EffectiveValue> = {};
  for (const [path, value] of valuesOf(config)) {
    if (value === undefined) continue;
    shown[path] = { value: redactValue(path, value, config.origins), origin: originOf(path, config.origins) };
  }
  return shown;
}

function* valuesOf(config: DragomanConfig): Generator<readonly [string, ShownValue], void, undefined> {
  const { server, times, log } = config;
  yield ["server.host", server.host];
  yield ["server.port", server.port];
  yield ["server.grpc", server.grpcPort !== false];
  yield ["server.grpcPort", server.grpcPort === false ? undefined : (server.grpcPort ?? "the one after the port")];
  yield ["server.publicUrl", server.publicUrl];
  yield ["server.grpcPublicUrl", server.grpcPublicUrl];
  yield ["server.card", server.card];
  yield ["server.cors.origins", server.cors.origins];
  yield ["server.watchdog", server.watchdogMs === false ? false : formatDuration(server.watchdogMs)];
  yield ["store", config.store];
  yield ["default", config.default];
  for (const [name, agent] of config.agents) yield* agentValues(`agents.${name}`, agent);
  for (const [key, value] of Object.entries(server.tls ?? {})) yield [`server.tls.${key}`, value];
  yield* authValues(config.auth);
  for (const [key, value] of Object.entries(config.signing ?? {})) yield [`signing.${key}`, value];
  yield ["strict", config.strict];
  yield* sectionValues(config);
  for (const [key, value] of Object.entries(config.limits)) yield [`limits.${key}`, formatLimit(key, value)];
  yield* pushValues(config.push);
  yield ["retention.idempotency", formatDuration(times.idempotencyMs)];
  yield ["retention.compactAfter", formatDuration(times.compactAfterMs)];
  yield ["retention.pruneAfter", times.pruneAfterMs === undefined ? "never" : formatDuration(times.pruneAfterMs)];
  yield ["cancelGrace", formatDuration(times.cancelGraceMs)];
  yield ["audit.file", config.audit?.file];
  yield ["audit.required", config.audit?.required];
  yield ["log.level", log.level];
  yield ["log.pretty", log.pretty ?? "when stderr is a terminal"];
}

function* pushValues(push: DragomanConfig["push"]): Generator<readonly [string, ShownValue], void, undefined> {
  const { timeoutMs, hmac, jwt, ...rest } = push;
  for (const [key, value] of Object.entries(rest)) yield [`push.${key}`, value];
  yield ["push.timeout", formatDuration(timeoutMs)];
  yield ["push.hmac.secret", hmac?.secret];
  for (const [key, value] of Object.entries(jwt ?? {})) yield [`push.jwt.${key}`, value];
}

/** Never reads keys and passwords. */
function* authValues(auth: DragomanConfig["auth"]): Generator<readonly [string, ShownValue], void, undefined> {
  const { anonymous = false, apiKeys = [], apiKey = {}, basic = [], jwt, mtls } = auth;
  yield ["auth.anonymous", anonymous];
  for (const [at, { owner, scopes }] of apiKeys.entries()) {
    yield [`auth.apiKeys[${at}].key`, REDACTED];
    yield [`auth.apiKeys[${at}].owner`, owner];
    yield [`auth.apiKeys[${at}].scopes`, scopes];
  }
  for (const [key, name] of Object.entries(apiKey)) yield [`auth.apiKey.${key}`, name];
  for (const [at, { user, owner, scopes }] of basic.entries()) {
    yield [`auth.basic[${at}].user`, user];
    yield [`auth.basic[${at}].password`, REDACTED];
    yield [`auth.basic[${at}].owner`, owner];
    yield [`auth.basic[${at}].scopes`, scopes];
  }
  if (jwt !== undefined) {
    const { clockSkew, ...rest } = jwt;
    for (const [key, value] of Object.entries(rest)) yield [`auth.jwt.${key}`, value];
    if (clockSkew !== undefined) yield ["auth.jwt.clockSkew", formatDuration(clockSkew)];
  }
  for (const [key, value] of Object.entries(mtls ?? {})) yield [`auth.mtls.${key}`, value];
}

/** The schema type of each limit. */
const LIMIT_KINDS: ReadonlyMap<string, unknown> = new Map(
  Object.entries(limits.shape).map(([key, { def }]) => [key, "innerType" in def ? def.innerType : undefined]),
);

function formatLimit(key: string, value: number | readonly string[]): ShownValue {
  if (typeof value !== "number") return value;
  const kind = LIMIT_KINDS.get(key);
  if (kind === size) return formatSize(value);
  return kind === wait ? formatDuration(value) : value;
}

function* agentValues(path: string, agent: AgentConfig): Generator<readonly [string, ShownValue], void, undefined> {
  const { source, overrides } = agent;
  if (source.kind === "builtin") {
    const { kind, ...how } = source;
    yield* membersOf(path, how);
  }
  if (source.kind === "module") {
    yield [`${path}.module`, source.file];
    yield [`${path}.isolate`, source.isolate];
  }
  if (source.kind === "process") {
    yield [`${path}.exec`, source.command];
    yield [`${path}.format`, source.format];
    yield [`${path}.cwd`, source.cwd];
    yield [`${path}.stderr`, source.stderr];
    // Arguments and environments of programs may contain secrets under any name and in any form.
    for (const name of Object.keys(source.env)) yield [`${path}.env.${name}`, REDACTED];
  }
  if (source.kind === "link") {
    const { kind, patienceMs, ...credentials } = source;
    yield* membersOf(`${path}.link`, { ...credentials });
    if (patienceMs !== undefined) yield [`${path}.link.patience`, formatDuration(patienceMs)];
  }
  const { skills, timeoutMs, ...rest } = overrides;
  for (const [key, value] of Object.entries(rest)) yield [`${path}.${key}`, value];
  if (skills !== undefined) yield [`${path}.skills`, skills.map((skill) => skill.id)];
  if (timeoutMs !== undefined) yield [`${path}.timeout`, formatDuration(timeoutMs)];
}

function originOf(path: string, origins: ReadonlyMap<string, Origin>): string {
  const origin = origins.get(path);
  if (origin === undefined) return "default";
  const { place, variables } = origin;
  return variables.length === 0 ? place : `${place} (${variables.map((name) => `\${${name}}`).join(", ")})`;
}

function redactValue(
  path: string,
  value: Exclude<ShownValue, undefined>,
  origins: ReadonlyMap<string, Origin>,
): EffectiveValue["value"] {
  if (!isList(value)) return isSecret(path, origins) ? REDACTED : redactScalar(value);
  return value.map((item, index) =>
    isSecret(`${path}[${index}]`, origins) || isSecretOption(value[index - 1]) ? REDACTED : redactScalar(item),
  );
}

/** Redacts secrets within a string, such as credentials in a URL. */
function redactScalar(value: EffectiveScalar): EffectiveScalar {
  return typeof value === "string" ? redactText(value) : value;
}

/** As in `--password sesame`. */
function isSecretOption(before: EffectiveScalar | undefined): boolean {
  return typeof before === "string" && /^-[\w-]+$/.test(before) && isSecretName(before.replace(/^-+/, ""));
}

const isList = (value: Exclude<ShownValue, undefined>): value is readonly EffectiveScalar[] => Array.isArray(value);

/** Keys whose values are always secret. */
const SECRET_KEY = /\.(?:secret|password|key|apiKey|clientSecret|ak|sk)$/;

/** By its key or by the name of the variable it came from. */
function isSecret(path: string, origins: ReadonlyMap<string, Origin>): boolean {
  return SECRET_KEY.test(path) || origins.get(path)?.variables.some((name) => SECRET_NAME.test(name)) === true;
}
