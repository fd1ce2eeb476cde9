import { z } from "zod";
import { DEFAULT_LIMITS, DEFAULT_TIMES } from "../engine/options.ts";
import { loadExtensions, perInstallation } from "../extension/installed.ts";
import { describeMissingStore } from "../extension/missing.ts";
import { describeStores } from "../store/open.ts";
import { formatPath, isContainer, toFindings } from "../yaml/problems.ts";
import { count, mediaType, port, rate, text } from "../yaml/value-types.ts";
import { describeAbsentKey } from "./config/problems.ts";
import { grpcPublicUrl, isStoreUrl, mountPath, publicUrl, trustProxy } from "./config/schema.ts";
import { sectionOptionSchemas } from "./config/sections.ts";
import { DEFAULT_SERVE_LIMITS, DEFAULT_SERVE_TIMES, type ServeOptions } from "./options.ts";

const object = z.record(z.string(), z.unknown());
const callable = z.custom((value) => typeof value === "function", { error: "must be a function" });
/** Accepts Infinity, which disables a limit. */
const atLeast = (least: number) =>
  z.custom((value) => typeof value === "number" && value >= least, { error: `must be a number of ${least} or more` });

const hasMethods = (value: unknown, ...names: readonly string[]) =>
  isContainer(value) && names.every((name) => typeof Reflect.get(value, name) === "function");

export function isAgent(value: unknown): boolean {
  return isContainer(value) && hasMethods(value, "run") && typeof Reflect.get(value, "profile") === "object";
}

const agent = z.custom(isAgent, {
  error: "must be an agent: what defineAgent, exec, remote, llm or workflow(definition) returns",
});
const store = z.custom((value) => (typeof value === "string" ? isStoreUrl(value) : hasMethods(value, "write")), {
  error: ({ input }) => describeMissingStore(input) ?? `must be ${describeStores()}, or a TaskStore`,
});
const log = z.custom((value) => value === false || hasMethods(value, "debug", "info", "warn", "error"), {
  error: "must be false or an object with the functions debug, info, warn and error",
});

/** Every name as an optional key with the same value type. */
const each = <T extends z.ZodType>(names: readonly string[], value: T) =>
  Object.fromEntries(names.map((name) => [name, value.optional()]));

const limits = z.strictObject({
  ...each(Object.keys({ ...DEFAULT_LIMITS, ...DEFAULT_SERVE_LIMITS }), atLeast(1)),
  ...each(["ratePerAddress", "ratePerOwner"], rate),
  ...each(["burstPerAddress", "burstPerOwner"], count),
  mediaTypes: z.array(mediaType).optional(),
});
const times = z.strictObject(each(Object.keys({ ...DEFAULT_TIMES, ...DEFAULT_SERVE_TIMES }), atLeast(0)));

/** Options of `serve`, `createHandler` and the middleware. Nested sections are validated by their consumers. */
const SHAPE = {
  agents: z.record(z.string(), agent),
  default: text.optional(),
  host: text.optional(),
  port: port.optional(),
  grpcPort: z.union([port, z.literal(false)], { error: "must be a port or false" }).optional(),
  publicUrl: publicUrl.optional(),
  grpcPublicUrl: grpcPublicUrl.optional(),
  trustProxy: trustProxy.optional(),
  path: mountPath.optional(),
  card: z.enum(["hybrid", "v1", "v03"]).optional(),
  strict: z.boolean().optional(),
  push: z.union([z.boolean(), object], { error: "must be true, false or options" }).optional(),
  store: store.optional(),
  baseDirectory: text.optional(),
  signing: object.optional(),
  cors: z.strictObject({ origins: z.array(text) }).optional(),
  auth: object.optional(),
  authenticate: callable.optional(),
  security: object.optional(),
  tls: object.optional(),
  audit: object.optional(),
  limits: limits.optional(),
  times: times.optional(),
  log: log.optional(),
  monitor: z.custom(isContainer).optional(),
} satisfies Record<keyof ServeOptions, z.ZodType>;

const serveOptions = perInstallation(() => z.strictObject({ ...SHAPE, ...sectionOptionSchemas() }));

/** Rejects unknown names and invalid values, all at once, before anything is opened. */
export async function checkServeOptions(what: string, options: ServeOptions): Promise<void> {
  await loadExtensions("config", "calling", "serving");
  const { error } = serveOptions().safeParse(options, { jitless: true });
  if (error === undefined) return;
  const problems = error.issues
    .flatMap((issue) => toFindings(issue, serveOptions(), options, describeAbsentKey))
    .map(({ path, message }) => (path.length === 0 ? message : `${formatPath(path)}: ${message}`));
  throw new TypeError(`${what}: ${problems.join("\n")}`);
}

/** The URL of a framework's own server cannot be derived: a Host header is not trustworthy. */
export function requirePublicUrl(what: string, { publicUrl }: ServeOptions): string {
  if (publicUrl === undefined) {
    throw new TypeError(`${what}: publicUrl is required: where callers reach it, e.g. "https://example.com/a2a".`);
  }
  return publicUrl.replace(/\/+$/, "");
}
