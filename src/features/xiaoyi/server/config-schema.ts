/** The configuration section for Huawei's assistant Xiaoyi and for agents that dial in. */

import { z } from "zod";
import { isAllowEntry } from "../../../core/auth/guarded-fetch/target-policy.ts";
import { duration, optional, size, text, timer, wait } from "../../../core/yaml/value-types.ts";
import { DEFAULT_LANGUAGE, LANGUAGES } from "../codec/phone-texts.ts";
import { RENDER_MODES } from "../codec/render/renderer.ts";
import { isLinkUrl, XIAOYI_LINK_URL } from "./link-servers.ts";
import { PUSH_DEVICES, XIAOYI_PUSH_URL } from "./phone-services.ts";
import { isSafeUrl, XIAOYI_UPLOAD_URL } from "./trusted-exchanger.ts";

/** The platform's console silently truncates longer ones, which then no longer match. */
const MAX_CREDENTIAL_LENGTH = 64;

const credential = text.max(MAX_CREDENTIAL_LENGTH, {
  error: `must not have more than ${MAX_CREDENTIAL_LENGTH} characters: the console cuts them`,
});
const safeUrl = z.string().refine(isSafeUrl, { error: "must be an https address, or http on this machine" });

const pushOptions = z.strictObject({
  apiId: text.describe("Id of the webhook trigger that was made in the platform's console."),
  url: safeUrl.default(XIAOYI_PUSH_URL).describe("Where notifications are sent. `http:` only on this machine."),
  ak: optional(credential, "Access key of the trigger; default: that of the entry."),
  sk: optional(credential, "Secret key of the trigger; default: that of the entry."),
  devices: z
    .enum(PUSH_DEVICES)
    .exactOptional()
    .describe(
      "Which devices are notified: those of the conversation (`session`, the default with `http`) or `all` that ever talked to the agent (the default with `links`, where they belong to one user).",
    ),
  spacing: timer
    .prefault("15s")
    .describe(
      "Minimum time between two notifications. The platform drops a notification that reaches a device within 15s of another.",
    ),
});
const push = optional(
  pushOptions,
  "Notifies users who left when their task ends or asks for input. Needs the variable `push_id` in the platform's console.",
);

const render = z
  .enum(RENDER_MODES)
  .default("phone")
  .describe(
    "How answers are rendered: `phone` as devices show them well, `spec` as the platform's documentation prints them.",
  );

const language = z
  .enum(LANGUAGES)
  .default(DEFAULT_LANGUAGE)
  .describe("Language of what the server itself says to people, e.g. that a task failed: `zh` or `en`.");

/** How the platform authenticates; an entry has exactly one. */
export const HTTP_ACCESS = ["sk", "apiKey", "oauth"] as const;

const http = z.strictObject({
  agent: text.describe("Name of the agent."),
  ak: optional(credential, "Access key, for signed requests; with `sk`."),
  sk: optional(credential, "Secret key, for signed requests; with `ak`."),
  apiKey: optional(credential, "Key that requests carry, instead of a signature."),
  header: z
    .string()
    .regex(/^[\w!#$%&'*+.^`|~-]+$/, { error: "must be the name of a header" })
    .exactOptional()
    .describe("With `apiKey`: the header that carries it, bare or as `Bearer`; default: `Authorization`."),
  query: optional(text, "With `apiKey`: a query parameter that may carry it instead."),
  oauth: z
    .strictObject({
      clientId: credential.describe("Client id, as in the platform's console."),
      clientSecret: credential.describe("Client secret, as in the platform's console."),
    })
    .exactOptional()
    .describe("Client credentials, exchanged for tokens at `/agents/NAME/agent/token`."),
  account: z
    .strictObject({
      tokenUrl: safeUrl.describe(
        "Where the code of a login is traded for who logged in. `http:` only on this machine.",
      ),
      clientId: text.describe("Client id at the login server."),
      clientSecret: text.describe("Client secret at the login server."),
      redirectUri: optional(text, "As registered with the login server, if it asks for one."),
    })
    .exactOptional()
    .describe("Lets users log in (`authorize`)."),
  owner: optional(
    text,
    "Owner of the platform's tasks; default: `xiaoyi:` and the agent's name, where `auth` is configured.",
  ),
  render,
  language,
  sessionTtl: duration.prefault("7d").describe("How long a session opened by `initialize` is valid."),
  push,
  upload: z
    .strictObject({
      uid: text.describe("User id for uploads."),
      apiKey: text.describe("Key for uploads."),
      url: safeUrl.default(XIAOYI_UPLOAD_URL).describe("Where files are uploaded. `http:` only on this machine."),
    })
    .exactOptional()
    .describe("Lets the agent send files to the phone."),
});

const linkUrl = z.string().refine(isLinkUrl, { error: "must be a wss address, or ws on this machine" });

const link = z.strictObject({
  agent: text.describe("Name of the agent."),
  agentId: text.describe("Id of the agent on the platform."),
  ak: credential.describe("Access key."),
  sk: credential.describe("Secret key."),
  url: linkUrl.default(XIAOYI_LINK_URL).describe("The platform's server. `ws:` only on this machine."),
  backup: z
    .strictObject({
      url: linkUrl.describe("The second server."),
      servername: optional(text, "Name that its certificate must be valid for; default: the host of the link's `url`."),
      fingerprint: z
        .string()
        .regex(/^(?:[0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$/, { error: "must be a SHA-256 fingerprint in hexadecimal" })
        .exactOptional()
        .describe("SHA-256 of the one certificate that is accepted, whatever its name."),
      insecure: z
        .boolean()
        .exactOptional()
        .describe(
          "Accept any certificate. Anyone on the network path can then read everything and use the credentials.",
        ),
    })
    .exactOptional()
    .describe("A second server to dial; a message is answered over the one it came from."),
  owner: optional(text, "Owner of the tasks; default: `xiaoyi:` and the agent's name, where `auth` is configured."),
  render,
  language,
  heartbeat: duration
    .refine((milliseconds) => milliseconds >= 1_000 && milliseconds <= 600_000, { error: "must be 1s to 10m" })
    .prefault("20s")
    .describe("Between two heartbeats."),
  reconnect: z
    .strictObject({
      first: duration.prefault("2s").describe("Delay before the first attempt; doubled after each failure."),
      longest: duration.prefault("60s").describe("Maximum delay between two attempts."),
      tries: z.int().min(1).default(50).describe("Consecutive failures after which the link is given up."),
      stableAfter: duration.prefault("10s").describe("A link that stayed open this long does not count as a failure."),
    })
    .prefault({})
    .describe("When a link that closed is opened again."),
  uid: optional(text, "With `apiKey`: lets the agent send files to the phone."),
  apiKey: optional(text, "Key for uploading files; with `uid`."),
  uploadUrl: safeUrl.default(XIAOYI_UPLOAD_URL).describe("Where files are uploaded. `http:` only on this machine."),
  push,
});

const files = z.strictObject({
  maxBytes: size.prefault("30MiB").describe("Size of one file."),
  timeout: timer.prefault("60s").describe("For fetching one file."),
  allowHosts: z
    .array(z.string().refine(isAllowEntry, { error: "must be a host, an address or a range of addresses" }))
    .default([])
    .describe("Hosts and addresses in private networks that files may be fetched from; public ones always may."),
  quota: size
    .prefault("1GiB")
    .describe("Total size of the files that are kept; the least recently sent are deleted first."),
  keep: duration.prefault("7d").describe("How long files are kept."),
});

/** Each pair is complete or absent. */
export const DIAL_IN_CREDENTIALS = [
  ["ak", "sk"],
  ["uid", "apiKey"],
] as const;

export const dialIn = z
  .strictObject({
    agentId: text.describe("Id by which the agent introduces itself; no other agent here may have it."),
    ak: optional(text, "Access key, as the agent has it; with `sk`."),
    sk: optional(text, "Secret key, as the agent has it. It signs the time when the agent dials."),
    uid: optional(text, "Account id, for agents that send `x-uid` and `x-api-key`; with `apiKey`."),
    apiKey: optional(text, "Key that such an agent sends; with `uid`."),
    patience: optional(
      wait,
      "How long a task under way waits for an agent that lost its connection to come back; default: 90s. A new message to an agent that is not connected waits 10s.",
    ),
  })
  .exactOptional()
  .describe("An agent that dials `/openclaw/v1/ws/link`, as it would dial Xiaoyi.");

export const xiaoyi = z
  .strictObject({
    http: z
      .array(http)
      .default([])
      .describe(
        "Agents that the platform calls at `/agents/NAME/agent/message`, each with one of `ak` and `sk`, `apiKey`, `oauth`.",
      ),
    links: z.array(link).default([]).describe("Agents that dial the platform, and need no address of their own."),
    files: files.prefault({}).describe("Files that users send: they are fetched before the agent reads the message."),
  })
  .prefault({})
  .describe("How agents are connected to Huawei's assistant Xiaoyi.");
