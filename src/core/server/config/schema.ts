import { z } from "zod";
import { SIGNING_ALGORITHMS } from "../../auth/signatures/keys.ts";
import { DEFAULT_LIMITS } from "../../engine/options.ts";
import { loadedEntries, perInstallation } from "../../extension/installed.ts";
import { describeMissingStore } from "../../extension/missing.ts";
import type { Fields } from "../../model/json.ts";
import { describeStores, storeKinds } from "../../store/open.ts";
import {
  count,
  duration,
  mediaType,
  optional,
  port,
  rate,
  size,
  text,
  timer,
  wait,
  watchdog,
} from "../../yaml/value-types.ts";
import { DEFAULT_REQUESTS } from "../access/admission.ts";
import { DEFAULT_CONNECTION_LIMITS } from "../access/connections.ts";
import { isAddressOrNetwork } from "../access/trusted-proxies.ts";
import { agentKindKeys, agentKinds } from "./agent-kinds.ts";
import { auth, tls } from "./schema-auth.ts";
import { sectionSchemas } from "./sections.ts";

/** A shorter secret could be guessed from a single signature. */
const MIN_SECRET_LENGTH = 16;

const PUBLIC_URL_ERROR = "must be an http or https address without query, fragment or login";
export const publicUrl = z
  .url({ protocol: /^https?$/, error: PUBLIC_URL_ERROR })
  .refine((url) => !/[?#]|\/\/[^/]*@/.test(url), { error: PUBLIC_URL_ERROR })
  .transform((url) => url.replace(/\/+$/, ""));

const HOST_AND_PORT_ERROR = "must be host:port, without a scheme";
export const grpcPublicUrl = z
  .string()
  .regex(/^(?:\[[0-9A-Fa-f:.]+\]|[^\s/:@]+):\d{1,5}$/, { error: HOST_AND_PORT_ERROR })
  .refine((text) => Number(text.slice(text.lastIndexOf(":") + 1)) <= 65_535, { error: HOST_AND_PORT_ERROR });

const MOUNT_PATH_ERROR = "must begin with a slash and have no query, fragment or empty segment";
export const mountPath = z.string().regex(/^(?:\/[^\s/?#]+)*\/?$/, { error: MOUNT_PATH_ERROR });

const skill = z.strictObject({
  id: text.describe("Id of the skill, by which callers find it."),
  name: text.describe("Name for people."),
  description: text.describe("What the skill does."),
  tags: optional(z.array(text), "Keywords of the skill; default: its id."),
  examples: optional(z.array(text), "Messages that show its use."),
  inputModes: optional(z.array(text), "Media types it accepts; default: those of the agent."),
  outputModes: optional(z.array(text), "Media types it produces; default: those of the agent."),
  scopes: optional(z.array(text), "Scopes that a caller needs to ask for it by its id."),
});

/** Keys of agents of every kind. */
export const generalKeys = z.strictObject({
  name: optional(text, "Name on the card, instead of the agent's own."),
  description: optional(text, "Description on the card, instead of the agent's own."),
  skills: optional(z.array(skill).min(1), "Skills on the card, instead of the agent's own."),
  inputModes: optional(
    z.array(text).min(1),
    "Media types of the parts it accepts, such as `text/plain`, `image/*` or `*/*`, instead of the agent's own; others are refused. Default of `exec` and `module`: `text/plain` and `application/json`.",
  ),
  concurrency: optional(
    count,
    "Maximum number of concurrent turns; default: 16 for `exec`, 8 with `isolate`, else no limit.",
  ),
  onCrash: optional(
    z.enum(["fail", "resume"]),
    "What becomes of a running task when the server dies: failed, or run again. `resume` only if repeating does no harm.",
  ),
  repeatTextInStatus: optional(
    z.boolean(),
    "Whether a completed task repeats the text of its artifacts as its status message, for callers that ignore artifacts; default: `false`.",
  ),
  timeout: optional(wait, "Maximum duration of one turn; after that the task fails."),
});

export type GeneralKeys = z.output<typeof generalKeys>;

const agentSchema = perInstallation(() =>
  z.strictObject({
    ...agentKindKeys(),
    ...generalKeys.shape,
    ...Object.fromEntries(loadedEntries("config", "agentKeys")),
  }),
);

export const trustProxy = z.array(
  z.string().refine(isAddressOrNetwork, { error: "must be an IP address or a network such as 10.0.0.0/8" }),
);

/** A name is part of the agent's URL. */
const AGENT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

const server = z.strictObject({
  host: text
    .default("127.0.0.1")
    .describe("Address to listen on. Anything but loopback needs `auth`, and so does a `publicUrl` elsewhere."),
  port: port.default(4000).describe("HTTP port; 0 picks a free one."),
  grpc: z.boolean().default(true).describe("Whether gRPC is served."),
  grpcPort: optional(port, "gRPC port; 0 picks a free one; default: the one after `port`."),
  publicUrl: optional(publicUrl, "URL at which callers reach the server, if not host and port; written into cards."),
  grpcPublicUrl: optional(
    grpcPublicUrl,
    "`host:port` at which callers reach gRPC, if not the host of `publicUrl` and `grpcPort`.",
  ),
  trustProxy: optional(
    trustProxy,
    "Addresses or networks (`10.0.0.0/8`) of the proxies in front of the server. Callers are then counted by the address that these add to `X-Forwarded-For`, over HTTP, WebSocket and gRPC; default: none.",
  ),
  path: mountPath
    .default("/")
    .describe("Path prefix of everything served over HTTP, for a proxy that forwards paths unchanged."),
  card: z
    .enum(["hybrid", "v1", "v03"])
    .default("hybrid")
    .describe("Form of the card for readers that name no version; `hybrid` is understood by readers of 1.0 and 0.3."),
  cors: z
    .strictObject({
      origins: z.array(text).default([]).describe('Origins that browsers may call from; `"*"` allows all.'),
    })
    .prefault({})
    .describe("What browsers of other origins may do; by default nothing."),
  watchdog: watchdog
    .prefault("5s")
    .describe(
      "CPU time that code of an agent may take without a pause, during which nothing else is served; then it is named in the log and the process ends with exit code 70. `false`: never.",
    ),
  tls: optional(tls, "Files for serving HTTP and gRPC over TLS; reloaded when they change."),
});

const DEFAULTS = { ...DEFAULT_LIMITS, ...DEFAULT_REQUESTS, ...DEFAULT_CONNECTION_LIMITS };

const limit = (value: number, description: string) => count.default(value).describe(description);

export const limits = z.strictObject({
  body: size.prefault("16MiB").describe("Size of a request; more is answered with 413."),
  parts: count.default(1_000).describe("Parts of a message."),
  depth: count.default(64).describe("Levels of nesting in a request."),
  arriving: size
    .prefault("512MiB")
    .describe(
      "Size of all requests together that are on their way in; more is answered with 429. Where there are credentials to show, callers without any have a quarter of it.",
    ),
  unsent: size
    .prefault("512MiB")
    .describe(
      "Size of all answers together that wait to be read; more is answered with 429. One answer is always sent, however large.",
    ),
  unsentPerOwner: size
    .prefault("128MiB")
    .describe("The same for one owner, where there are credentials to show; callers without any count as one owner."),
  values: count.default(200_000).describe("Values in the JSON of a request, members and items of all levels together."),
  historyPage: limit(DEFAULTS.historyPage, "Newest messages of a task that are returned at most."),
  page: size
    .prefault("16MiB")
    .describe(
      "Length of a page of a list of tasks; a page that would be longer ends earlier, with a token for the next.",
    ),
  tasksPerOwner: limit(DEFAULTS.tasksPerOwner, "Tasks of one owner that are queued or running."),
  messageBytesPerOwner: size
    .prefault("256MiB")
    .describe(
      "Size of the messages of one owner's queued and running tasks together, with their history; more is answered with 429. An owner without such a task can always start one.",
    ),
  streamsPerOwner: limit(DEFAULTS.streamsPerOwner, "Open streams of one owner."),
  id: limit(DEFAULTS.id, "Length of an id or tenant that a caller chooses."),
  attempts: limit(
    DEFAULTS.attempts,
    "How often a run with `onCrash: resume` is started for one message before its task fails.",
  ),
  part: size
    .prefault("16MiB")
    .describe("Length of one part, from callers and from agents; files of callers are bounded by `file`."),
  file: optional(size, "Size of one file in a message, in bytes of the file itself; default: that of `part`."),
  mediaTypes: optional(
    z.array(mediaType).min(1),
    "Media types that files in messages may have, such as `application/pdf` or `image/*`, for any agent; default: all. A file without one counts as `application/octet-stream`.",
  ),
  task: size
    .prefault("256MiB")
    .describe(
      "How much is kept of one task, its messages, names and metadata included; a task that grows beyond it fails.",
    ),
  failedLogins: count
    .default(300)
    .describe("Wrong credentials from one address within a minute; then it gets 429 for the rest of it."),
  queue: limit(DEFAULTS.queue, "Tasks that may wait for one agent."),
  pushConfigs: limit(DEFAULTS.pushConfigs, "Push notification configs of one task."),
  hops: limit(
    DEFAULTS.hops,
    "Calls from agent to agent that may lead to a request; one that came further is refused before any work.",
  ),
  storedBytesPerOwner: optional(
    size,
    "What the tasks of one owner may take up in the store before it can start no more and register no more webhooks; default: no limit.",
  ),
  streamsPerAddress: limit(DEFAULTS.streamsPerAddress, "Open streams from one address."),
  ratePerAddress: optional(
    rate,
    "Requests a second from one address (an IPv6 network of /64 counts as one); more is answered with 429; default: no limit. Behind a proxy all callers have its address.",
  ),
  burstPerAddress: optional(count, "Burst of requests from one address; default: five seconds' worth of its rate."),
  ratePerOwner: optional(rate, "Requests a second of one owner; more is answered with 429; default: no limit."),
  burstPerOwner: optional(count, "Burst of requests of one owner; default: five seconds' worth of its rate."),
  requestsPerAddress: limit(
    DEFAULTS.requestsPerAddress,
    "Requests from one address that are being answered at the same time.",
  ),
  requestsPerOwner: limit(DEFAULTS.requestsPerOwner, "Requests of one owner that are being answered at the same time."),
  connections: limit(DEFAULTS.connections, "Open connections; HTTP and gRPC count apart."),
  connectionsPerAddress: limit(
    DEFAULTS.connectionsPerAddress,
    "Open connections from one address; HTTP and gRPC count apart.",
  ),
  resetsPerAddress: rate
    .default(DEFAULTS.resetsPerAddress)
    .describe(
      "gRPC calls a second from one address that are reset before their caller is known; one that is refused, or is for health or reflection, counts as a tenth. Ten seconds' worth may come at once; after more, the address is refused for 10 s, except on connections on which credentials were shown. Behind a proxy all callers have its address: set a higher number there.",
    ),
  headers: size.prefault("16KiB").describe("Size of a request's headers; HTTP answers more with 431."),
  headersTimeout: wait.prefault("20s").describe("Maximum time for the headers of a request to arrive."),
  requestTimeout: wait.prefault("5m").describe("Maximum time for the whole request to arrive."),
});

const retention = z.strictObject({
  idempotency: duration.prefault("1d").describe("How long a repeated send is recognised."),
  compactAfter: duration.prefault("1d").describe("How long after its end a task keeps its individual events."),
  pruneAfter: optional(duration, "How long after its end a task is deleted; default: never."),
});

const push = z.strictObject({
  enabled: z.boolean().default(true).describe("Whether callers may register webhooks."),
  allowPrivateTargets: optional(
    z.boolean(),
    "Allow webhooks in private networks and on this machine; any caller can then make the server send requests there. Default: only for a server that only this machine can reach.",
  ),
  attempts: count
    .default(DEFAULT_LIMITS.pushAttempts)
    .describe("Attempts per notification before its config is given up; `dragoman push redeliver` starts again."),
  timeout: wait.prefault("10s").describe("Timeout of one attempt."),
  hmac: optional(
    z.strictObject({
      secret: z
        .string()
        .min(MIN_SECRET_LENGTH, { error: `must have at least ${MIN_SECRET_LENGTH} characters` })
        .describe("Shared by all receivers, so use it only if they are all yours."),
    }),
    "Sign notifications with a shared secret (`X-Dragoman-Signature`).",
  ),
  jwt: z
    .strictObject({
      keyFile: text.describe("Private key, P-256, Ed25519 or RSA, in PEM or JWK form; relative to this file."),
      kid: text.describe("Id of the key, by which receivers find the public key."),
      alg: optional(z.enum(SIGNING_ALGORITHMS), "Refuse a key for another algorithm."),
      issuer: optional(text, "Issuer of the tokens; default: the URL of the server."),
    })
    .exactOptional()
    .describe("Sign notifications with a key whose public part is at `/.well-known/jwks.json` (`X-Dragoman-JWT`)."),
});

const log = z.strictObject({
  level: z
    .enum(["debug", "info", "warn", "error", "silent"])
    .default("info")
    .describe("Minimum level of messages to write."),
  pretty: optional(z.boolean(), "Human-readable output; default: when stderr is a terminal."),
});

const signing = z.strictObject({
  keyFile: text.describe("Private key: an unencrypted PEM or a JWK, relative to this file."),
  kid: text.describe("Id of the key, by which verifiers find it."),
  alg: optional(z.enum(SIGNING_ALGORITHMS), "Algorithm; default: what the key is made for."),
  jku: optional(
    z.url({ protocol: /^https$/, error: "must be an https address" }),
    "Address of the public key set in the signatures; default: `/.well-known/jwks.json` of an https `server.publicUrl`.",
  ),
});

const audit = z.strictObject({
  file: text.describe(
    "File to which one line of JSON is added for everything a caller does and every push notification, relative to this one.",
  ),
  required: z
    .boolean()
    .default(false)
    .describe("Refuse all requests while nothing can be written to it; otherwise that is logged and counted."),
});

const CORE_STORES = /^(?:memory:|sqlite:.+)$/;

/** Whether it names a store. */
export const isStoreUrl = (url: string): boolean =>
  CORE_STORES.test(url) || storeKinds().some(([scheme]) => new RegExp(`^${scheme}://.+`).test(url));

const storeError = ({ input }: { readonly input?: unknown }) =>
  describeMissingStore(input) ?? `must be ${describeStores()}`;

/** The keys of the file that are there without any extension, but for agents. */
const coreKeys = z.strictObject({
  server: server.prefault({}).describe("Where and how the server is reached."),
  default: optional(text, "Name of the agent that is also served at the root; default: the first."),
  auth: auth.prefault({}).describe("Who may call. Default: anyone on this machine."),
  signing: optional(signing, "Signs the cards of all agents; the public key is at `/.well-known/jwks.json`."),
  limits: limits.prefault({}).describe("Limits on what callers may do."),
  push: push.prefault({}).describe("Push notifications: how registered webhooks are called."),
  retention: retention.prefault({}).describe("How long things are kept."),
  cancelGrace: timer
    .prefault("5s")
    .describe("How long an agent may take to stop after a cancellation; then it is abandoned."),
  strict: z
    .boolean()
    .default(false)
    .describe("Refuse what a caller's dialect cannot express, instead of leaving it out."),
  log: log.prefault({}).describe("What the server writes to stderr."),
  audit: optional(audit, "A record of who did what to which task; default: none."),
});

/** The whole file, after expansion of variables. Rules between keys are in `rules.ts`. */
export const configSchema = perInstallation(() => {
  const { server, default: defaultAgent, auth, signing, ...others } = coreKeys.shape;
  const kinds = [...agentKinds().keys()].map((key) => `\`${key}\``);
  const stores = [...new Set(storeKinds().map(([, { description }]) => `, or ${description}`))];
  return z.strictObject({
    server,
    store: z
      .string({ error: storeError })
      .refine(isStoreUrl, { error: storeError })
      .default("sqlite:.dragoman/data.db")
      .describe(`Where tasks are kept: \`memory:\`, or \`sqlite:\` and a file relative to this one${stores.join("")}.`),
    default: defaultAgent,
    agents: z
      .record(
        z.string().regex(AGENT_NAME, { error: "must be letters, digits, dots, dashes and underscores" }),
        agentSchema(),
      )
      .describe(`Agents by name; each has exactly one of ${kinds.slice(0, -1).join(", ")} and ${kinds.at(-1)}.`),
    auth,
    signing,
    ...sectionSchemas(),
    ...others,
  });
});

export type ParsedAgent = GeneralKeys & Fields;
export type ParsedConfig = z.output<typeof coreKeys> & {
  readonly store: string;
  readonly agents: Readonly<Record<string, ParsedAgent>>;
} & Fields;
