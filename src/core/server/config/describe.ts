import { formatDuration } from "../../model/duration.ts";
import { formatSize, size, wait } from "../../yaml/value-types.ts";
import { isSecretName, redactText } from "../logging/redact.ts";
import { agentKinds } from "./agent-kinds.ts";
import type { AgentConfig, DragomanConfig, Origin } from "./config.ts";
import { limits } from "./schema.ts";
import { sectionValues } from "./sections.ts";
import { type EffectiveScalar, membersOf, type ShownValue, type ShownValues } from "./shown-values.ts";

export interface EffectiveValue {
  readonly value: EffectiveScalar | readonly EffectiveScalar[];
  /** `default`, `command line`, or the position in the file, with the variables used in it. */
  readonly origin: string;
}

const REDACTED = "***";
const SECRET_NAME = /key|secret|token|passw|credential|auth|^(?:ak|sk)$|_(?:ak|sk)$/i;

/** Every effective value by its path in the file, with its origin; secrets are redacted. */
export function effectiveConfig(config: DragomanConfig): Readonly<Record<string, EffectiveValue>> {
  const origins = config.findOrigins();
  const shown: Record<string, EffectiveValue> = {};
  for (const [path, value] of valuesOf(config)) {
    if (value === undefined) continue;
    shown[path] = { value: redactValue(path, value, origins), origin: originOf(path, origins) };
  }
  return shown;
}

function* valuesOf(config: DragomanConfig): ShownValues {
  const { server, times, log } = config;
  yield ["server.host", server.host];
  yield ["server.port", server.port];
  yield ["server.grpc", server.grpcPort !== false];
  yield ["server.grpcPort", server.grpcPort === false ? undefined : (server.grpcPort ?? "the one after the port")];
  const { publicUrl, grpcPublicUrl, trustProxy, card } = server;
  yield* membersOf("server", { publicUrl, grpcPublicUrl, trustProxy, card });
  yield* membersOf("server.cors", server.cors);
  yield ["server.watchdog", server.watchdogMs === false ? false : formatDuration(server.watchdogMs)];
  yield ["store", config.store];
  yield ["default", config.default];
  for (const [name, agent] of config.agents) yield* agentValues(`agents.${name}`, agent);
  yield* membersOf("server.tls", server.tls);
  yield* authValues(config.auth);
  yield* membersOf("signing", config.signing);
  yield ["strict", config.strict];
  yield* sectionValues(config);
  for (const [key, value] of Object.entries(config.limits)) yield [`limits.${key}`, formatLimit(key, value)];
  yield* pushValues(config.push);
  yield ["retention.idempotency", formatDuration(times.idempotencyMs)];
  yield ["retention.compactAfter", formatDuration(times.compactAfterMs)];
  yield ["retention.pruneAfter", times.pruneAfterMs === undefined ? "never" : formatDuration(times.pruneAfterMs)];
  yield ["cancelGrace", formatDuration(times.cancelGraceMs)];
  yield* membersOf("audit", config.audit);
  yield ["log.level", log.level];
  yield ["log.pretty", log.pretty ?? "when stderr is a terminal"];
}

function* pushValues(push: DragomanConfig["push"]): ShownValues {
  const { timeoutMs, hmac, jwt, ...rest } = push;
  yield* membersOf("push", rest);
  yield ["push.timeout", formatDuration(timeoutMs)];
  yield ["push.hmac.secret", hmac?.secret];
  yield* membersOf("push.jwt", jwt);
}

/** Never reads keys and passwords. */
function* authValues(auth: DragomanConfig["auth"]): ShownValues {
  const { anonymous, apiKeys, apiKey, basic, jwt, mtls } = auth;
  yield ["auth.anonymous", anonymous];
  for (const [at, entry] of apiKeys.entries()) yield* membersOf(`auth.apiKeys[${at}]`, { ...entry, key: REDACTED });
  yield* membersOf("auth.apiKey", apiKey);
  for (const [at, entry] of basic.entries()) yield* membersOf(`auth.basic[${at}]`, { ...entry, password: REDACTED });
  if (jwt !== undefined) {
    const { clockSkew, ...rest } = jwt;
    yield* membersOf("auth.jwt", rest);
    yield ["auth.jwt.clockSkew", formatDuration(clockSkew)];
  }
  yield* membersOf("auth.mtls", mtls);
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

function* agentValues(path: string, { kind, source, overrides }: AgentConfig): ShownValues {
  yield* agentKinds().get(kind)?.shown(path, source) ?? [];
  const { skills, timeoutMs, ...rest } = overrides;
  yield* membersOf(path, rest);
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
const SECRET_KEY = /\.(?:secret|password|key|apiKey|bearer|clientSecret|ak|sk)$/;

/** By its key or by the name of the variable it came from. */
function isSecret(path: string, origins: ReadonlyMap<string, Origin>): boolean {
  return SECRET_KEY.test(path) || origins.get(path)?.variables.some((name) => SECRET_NAME.test(name)) === true;
}
