import { z } from "zod";
import { BUILTIN_NAMES } from "../../agents/builtin.ts";
import { DURATION_PATTERN, parseDuration } from "../../agents/duration.ts";
import { PUSH_ALGORITHMS } from "../../auth/push-token.ts";
import { DEFAULT_LIMITS } from "../../engine/options.ts";
import { parseSize, SIZE_PATTERN } from "./size.ts";
import { unavailableMessage } from "./unavailable.ts";

/** Timers cannot be set further ahead than this. */
const LONGEST_TIMER = 2_147_483_647;

const DURATION_WORDS = "must be a duration such as 500ms, 60s, 5m, 1h or 7d";
const duration = z
  .string({ error: DURATION_WORDS })
  .regex(DURATION_PATTERN, { error: DURATION_WORDS })
  .transform((text) => parseDuration(text) ?? Number.POSITIVE_INFINITY)
  .refine(Number.isFinite, { error: "is too long" });
const timer = duration.refine((milliseconds) => milliseconds <= LONGEST_TIMER, {
  error: "must be shorter than 25 days",
});

const SIZE_WORDS = "must be a size such as 512KiB, 16MiB or 1GiB";
const size = z
  .string({ error: SIZE_WORDS })
  .regex(SIZE_PATTERN, { error: SIZE_WORDS })
  .transform((text) => parseSize(text) ?? Number.POSITIVE_INFINITY)
  .refine((bytes) => Number.isFinite(bytes) && bytes > 0, { error: SIZE_WORDS });

/** Anything shorter could be guessed by whoever sees one signature. */
const SHORTEST_SECRET = 16;

const count = z.int().min(1);
const port = z.int().min(0).max(65_535);
const text = z.string().min(1, { error: "must not be empty" });

const PUBLIC_URL_WORDS = "must be an http or https address without query, fragment or login";
const publicUrl = z
  .url({ protocol: /^https?$/, error: PUBLIC_URL_WORDS })
  .refine((url) => !/[?#]|\/\/[^/]*@/.test(url), { error: PUBLIC_URL_WORDS })
  .transform((url) => url.replace(/\/+$/, ""));

const HOST_AND_PORT = "must be host:port, without a scheme";

const skill = z.strictObject({
  id: text.describe("Id of the skill, by which callers find it."),
  name: text.describe("Name for people."),
  description: text.describe("What the skill does."),
  tags: z.array(text).exactOptional().describe("Words to find the skill by; the id unless given."),
  examples: z.array(text).exactOptional().describe("Messages that show its use."),
  inputModes: z.array(text).exactOptional().describe("Media types it takes, if not those of the agent."),
  outputModes: z.array(text).exactOptional().describe("Media types it gives, if not those of the agent."),
});

export const AGENT_KINDS = ["use", "module", "exec"] as const;
export const EXEC_ONLY = ["format", "cwd", "env"] as const;

const agent = z.strictObject({
  use: z.enum(BUILTIN_NAMES).exactOptional().describe("A built-in agent."),
  module: text
    .exactOptional()
    .describe(
      "File whose default export is what `defineAgent` returns: `.ts`, `.js` or `.mjs`, relative to this file.",
    ),
  exec: z
    .array(z.string())
    .min(1, { error: "must name a program" })
    .exactOptional()
    .describe("Program and arguments, started once per turn without a shell."),
  format: z
    .enum(["text", "json"])
    .exactOptional()
    .describe(
      "With `exec`: stdin gets the text of the message (`text`, the default) or one object `{message, history, task}` (`json`).",
    ),
  cwd: text
    .exactOptional()
    .describe("With `exec`: folder it runs in, relative to this file; the folder of this file unless given."),
  env: z
    .record(z.string(), z.string())
    .exactOptional()
    .describe("With `exec`: variables added to the environment of the server."),
  name: text.exactOptional().describe("Name on the card, instead of the agent's own."),
  description: text.exactOptional().describe("Description on the card, instead of the agent's own."),
  skills: z.array(skill).min(1).exactOptional().describe("Skills on the card, instead of the agent's own."),
  concurrency: count.exactOptional().describe("Turns at the same time, at most; `exec` agents have 16 unless given."),
  onCrash: z
    .enum(["fail", "resume"])
    .exactOptional()
    .describe(
      "What becomes of a running task when the server dies: failed, or run again. `resume` only if repeating does no harm.",
    ),
  timeout: timer
    .refine((milliseconds) => milliseconds > 0, { error: "must be longer than nothing" })
    .exactOptional()
    .describe("Longest time of one turn; the task fails after it."),
});

/** A name is part of the agent's address. */
export const AGENT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

const server = z.strictObject({
  host: text
    .default("127.0.0.1")
    .describe("Address to listen on. Anything but loopback needs `auth: { anonymous: true }`."),
  port: port.default(4000).describe("Port of HTTP; 0 takes any free one."),
  grpc: z.boolean().default(true).describe("Whether gRPC is served."),
  grpcPort: port.exactOptional().describe("Port of gRPC; the one after `port` unless given, 0 takes any free one."),
  publicUrl: publicUrl
    .exactOptional()
    .describe("Where callers reach the server, if that is not host and port; written into cards."),
  grpcPublicUrl: z
    .string()
    .regex(/^(?:\[[0-9A-Fa-f:.]+\]|[^\s/:@]+):\d{1,5}$/, { error: HOST_AND_PORT })
    .refine((text) => Number(text.slice(text.lastIndexOf(":") + 1)) <= 65_535, { error: HOST_AND_PORT })
    .exactOptional()
    .describe("`host:port` where callers reach gRPC, if that is not the host of `publicUrl` and `grpcPort`."),
  card: z
    .enum(["hybrid", "v1", "v03"])
    .default("hybrid")
    .describe("What a reader of the card gets who names no version; `hybrid` is understood by readers of 1.0 and 0.3."),
  cors: z
    .strictObject({
      origins: z.array(text).default([]).describe('Origins that browsers may call from; `"*"` stands for all.'),
    })
    .prefault({})
    .describe("What browsers of other origins may do; by default nothing."),
});

const limits = z.strictObject({
  body: size.prefault("16MiB").describe("Size of a request; more is answered with 413."),
  parts: count.default(1_000).describe("Parts of a message."),
  depth: count.default(64).describe("Levels of nesting in a request."),
  historyPage: count
    .default(DEFAULT_LIMITS.historyPage)
    .describe("Newest messages of a task that are returned at most."),
  tasksPerOwner: count.default(DEFAULT_LIMITS.tasksPerOwner).describe("Tasks of one owner that are queued or running."),
  streamsPerOwner: count.default(DEFAULT_LIMITS.streamsPerOwner).describe("Open streams of one owner."),
  id: count.default(DEFAULT_LIMITS.id).describe("Length of an id or tenant that a caller chooses."),
  attempts: count
    .default(DEFAULT_LIMITS.attempts)
    .describe("How often a run with `onCrash: resume` is started for one message before its task fails."),
  part: size.prefault("16MiB").describe("Length of one part, from callers and from agents."),
  task: size.prefault("256MiB").describe("What one task may write; an agent that goes on without end fails there."),
  queue: count.default(DEFAULT_LIMITS.queue).describe("Tasks that may wait for one agent."),
  pushConfigs: count.default(DEFAULT_LIMITS.pushConfigs).describe("Push notification configs of one task."),
});

const retention = z.strictObject({
  idempotency: duration.prefault("1d").describe("How long a repeated send is recognised."),
  compactAfter: duration.prefault("1d").describe("How long after its end a task keeps its single events."),
  pruneAfter: duration.exactOptional().describe("How long after its end a task is deleted; never unless given."),
});

const push = z.strictObject({
  enabled: z.boolean().default(true).describe("Whether callers may register webhooks."),
  allowPrivateTargets: z
    .boolean()
    .exactOptional()
    .describe(
      "Let webhooks be in private networks and on this machine; whoever may call can then make the server call there. Unless given, only a server that only this machine can reach does.",
    ),
  attempts: count
    .default(DEFAULT_LIMITS.pushAttempts)
    .describe("Tries of one notification before its config is given up; `dragoman push redeliver` takes it up again."),
  timeout: timer
    .refine((milliseconds) => milliseconds > 0, { error: "must be longer than nothing" })
    .prefault("10s")
    .describe("Longest time of one try."),
  hmac: z
    .strictObject({
      secret: z
        .string()
        .min(SHORTEST_SECRET, { error: `must have at least ${SHORTEST_SECRET} characters` })
        .describe("Known to the receivers too."),
    })
    .exactOptional()
    .describe("Sign notifications with a shared secret (`X-Dragoman-Signature`)."),
  jwt: z
    .strictObject({
      keyFile: text.describe("Private key, P-256, Ed25519 or RSA, in PEM or JWK form; relative to this file."),
      kid: text.describe("Name of the key, by which receivers find its public half."),
      alg: z.enum(PUSH_ALGORITHMS).exactOptional().describe("Refuse a key for another algorithm."),
      issuer: text.exactOptional().describe("Who signs; the address of the server unless given."),
    })
    .exactOptional()
    .describe("Sign notifications with a key whose public half is at `/.well-known/jwks.json` (`X-Dragoman-JWT`)."),
});

const log = z.strictObject({
  level: z
    .enum(["debug", "info", "warn", "error", "silent"])
    .default("info")
    .describe("Least important messages to write."),
  pretty: z
    .boolean()
    .exactOptional()
    .describe("For people rather than machines; unless given, when stderr is a terminal."),
});

const STORE_WORDS = 'must be "memory:" or "sqlite:<file>"';

const storeProblem = ({ input }: { readonly input?: unknown }): string =>
  String(input).startsWith("postgres") ? unavailableMessage("PostgreSQL") : STORE_WORDS;

/** The whole file, after variables were put in. What keys exclude or need each other is in `rules.ts`. */
export const configSchema = z.strictObject({
  server: server.prefault({}).describe("Where and how the server is reached."),
  store: z
    .string({ error: STORE_WORDS })
    .regex(/^(?:memory:|sqlite:.+)$/, { error: storeProblem })
    .default("sqlite:.dragoman/data.db")
    .describe("Where tasks are kept: `memory:`, or `sqlite:` and a file relative to this one."),
  default: text.exactOptional().describe("Name of the agent that also lives at the root; the first unless given."),
  agents: z
    .record(z.string().regex(AGENT_NAME, { error: "must be letters, digits, dots, dashes and underscores" }), agent)
    .describe("Agents by name; each has exactly one of `use`, `module` and `exec`."),
  auth: z
    .strictObject({
      anonymous: z
        .boolean()
        .default(false)
        .describe("Let anyone call who can reach the server, also from other machines."),
    })
    .prefault({})
    .describe("Who may call. Without it, anyone on this machine."),
  limits: limits.prefault({}).describe("Bounds on what callers may ask for."),
  push: push.prefault({}).describe("How those who registered a webhook are told of their tasks."),
  retention: retention.prefault({}).describe("How long things are kept."),
  cancelGrace: timer
    .prefault("5s")
    .describe("How long an agent may take to stop after a cancellation; then it is cut off."),
  strict: z
    .boolean()
    .default(false)
    .describe("Refuse to say what a caller's dialect has no words for, instead of leaving it out."),
  log: log.prefault({}).describe("What the server writes to stderr."),
});

export type ParsedConfig = z.output<typeof configSchema>;
export type ParsedAgent = ParsedConfig["agents"][string];
