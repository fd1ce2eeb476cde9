import type { IPublishPacket, MqttClient } from "mqtt";
import { z } from "zod";
import { canParseUrl, parseUrl } from "../../../core/model/url.ts";
import { type Channel, type ChannelAbilities, ChannelError, type Post } from "../../../core/wire/channel.ts";
import { ABNORMAL_CLOSURE } from "../../../core/wire/connection.ts";
import { DialError } from "../../../core/wire/dial-error.ts";
import { checkDraft } from "./check-draft.ts";
import { loadPackage } from "./load-package.ts";
import { findMentions, mentionsName } from "./mentions.ts";
import type { ChannelTools, Network } from "./network.ts";
import { createPostQueue } from "./post-queue.ts";
import { createUnacknowledged } from "./unacknowledged.ts";

const CONNECT_TIMEOUT_MS = 30_000;
/** How long the broker keeps posts for a participant that is away. */
const SESSION_SECONDS = 7 * 24 * 60 * 60;
const MAX_TEXT_BYTES = 256 * 1024;
/** Topic, properties and mention of a post. */
const RESERVE_BYTES = 2 * 1024;
const MAX_PACKET_BYTES = 1024 * 1024;
/** Reason codes of MQTT 5 §2.4 and return codes of MQTT 3.1.1 §3.2.2.3. */
const UNSUPPORTED_VERSION: readonly unknown[] = [132, 1];
const REFUSED: readonly unknown[] = [128, 133, 134, 135, 138, 140, 2, 4, 5];
const RATE_LIMITED: readonly unknown[] = [150, 151];
/** Where the broker limits the rate without saying for how long. */
const RETRY_AFTER_MS = 1_000;

const settings = z.strictObject({
  url: z
    .string()
    .regex(/^(?:mqtts?|wss?):\/\/\S+$/, { error: "must be an address with mqtt:, mqtts:, ws: or wss:" })
    .describe("Address of the broker."),
  name: z
    .string()
    .regex(/^[^\s/+#@\p{Cc}]+$/u, { error: "must not have spaces, `/`, `+`, `#` or `@`" })
    .describe("Name of the agent: the last level of the topics that it publishes to. Unique on the broker."),
  rooms: z
    .array(z.string().regex(/^(?![$/])[^+#\p{Cc}]*[^+#/\p{Cc}]$/u, { error: "must be a topic without `+` and `#`" }))
    .min(1)
    .describe("Topics. Posts are published to `<room>/<name>` and read from `<room>/+`, as UTF-8 text."),
  username: z.string().exactOptional().describe("User name at the broker."),
  password: z.string().exactOptional().describe("Password at the broker."),
});

type MqttSettings = z.infer<typeof settings>;

const ABILITIES: ChannelAbilities = {
  text: { max: MAX_TEXT_BYTES, unit: "bytes" },
  lines: true,
  maxFileBytes: 0,
  edits: false,
  replies: false,
  seesBots: "all",
  rate: { posts: 100, perMs: 1_000 },
  history: true,
};

export const mqtt: Network<MqttSettings> = {
  name: "mqtt",
  title: "MQTT",
  packages: ["mqtt"],
  settings,
  account: ({ name, url }) => `${name}@${parseUrl(url)?.host ?? ""}`,
  secrets: ({ password, url }) => [
    ...(password === undefined ? [] : [password]),
    ...(canParseUrl(url) && new URL(url).password !== "" ? [new URL(url).password] : []),
  ],
  rooms: ({ rooms }) => rooms,
  rename: (settings, suffix) => ({ ...settings, name: `${settings.name}-${suffix}` }),
  setup: [
    "Put the address of the broker into `url`, e.g. `mqtts://broker.example.com`, and the credentials into `username` and `password`.",
    "Choose a `name` that no other client has. The broker should allow publishing to `<room>/<name>` to this user only: else anyone can post under the name.",
    "Put topics into `rooms`. Participants write `@name` to address one of them.",
  ],
  abilities: ABILITIES,
  async open(options, { signal, temporary = false }, tools) {
    const { connect } = await loadPackage(mqtt, () => import("mqtt"));
    const dial = async (version: 4 | 5): Promise<Session> => {
      if (signal.aborted) throw new DialError("stopped", "The connection was stopped.");
      const session = temporary ? tools.uniqueId() : undefined;
      return await connected(connect(options.url, toClientOptions(options, version, session)), options, signal);
    };
    const session = await dial(5).catch((error: unknown) => {
      if (error instanceof DialError && UNSUPPORTED_VERSION.includes(error.status)) return dial(4);
      throw error;
    });
    return createChannel(session, options, tools);
  },
};

/** `session`: the id of one that ends with the connection. */
function toClientOptions(
  { name, password, username }: MqttSettings,
  protocolVersion: 4 | 5,
  session: string | undefined,
) {
  const keepSeconds = session === undefined ? SESSION_SECONDS : 0;
  return {
    protocolVersion,
    // The session of the name collects posts while no one is connected. A broker disconnects who has the same id.
    clientId: session === undefined ? `dragoman-${name}` : `dragoman-${session}`,
    clean: session !== undefined,
    reconnectPeriod: 0,
    connectTimeout: CONNECT_TIMEOUT_MS,
    ...(protocolVersion === 5 && {
      properties: { sessionExpiryInterval: keepSeconds, maximumPacketSize: MAX_PACKET_BYTES },
    }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
  };
}

/** `done` acknowledges the packet, unless it is given an error; the next one comes after that. */
type Receive = (packet: IPublishPacket, done: (error?: Error) => void) => void;

interface Session {
  readonly client: MqttClient;
  /** What the broker has kept arrives as soon as the connection is open. */
  readonly kept: readonly Parameters<Receive>[];
  readonly maxPacketBytes: number;
  /** Rejects if the broker refuses a room. */
  readonly subscribed: Promise<void>;
}

/**
 * Resolves when all rooms are subscribed to. What the broker has kept comes before it confirms that, and has to be
 * handled before: a session that exists has its rooms already.
 */
function connected(client: MqttClient, { rooms }: MqttSettings, signal: AbortSignal): Promise<Session> {
  return new Promise((resolve, reject) => {
    const kept: Parameters<Receive>[] = [];
    let maxPacketBytes = MAX_PACKET_BYTES;
    let subscribed = Promise.resolve();
    const done = (error?: DialError): void => {
      signal.removeEventListener("abort", stop);
      client.off("error", onError).off("close", onClose);
      // Later errors are followed by the end of the connection, which is what matters.
      client.on("error", () => {});
      if (error === undefined) resolve({ client, kept, maxPacketBytes, subscribed });
      else {
        client.end(true);
        reject(error);
      }
    };
    const stop = (): void => done(new DialError("stopped", "The connection was stopped."));
    const onError = (error: Error): void => done(toDialError(error));
    const onClose = (): void => done(new DialError("unreachable", "The broker closed the connection."));
    signal.addEventListener("abort", stop);
    client.on("error", onError).on("close", onClose);
    client.handleMessage = (packet, callback) => void kept.push([packet, callback]);
    client.once("connect", ({ properties, sessionPresent }) => {
      maxPacketBytes = properties?.maximumPacketSize ?? MAX_PACKET_BYTES;
      subscribed = subscribe(client, rooms);
      if (sessionPresent) done();
      else
        subscribed.then(
          () => done(),
          (error: DialError) => done(error),
        );
    });
  });
}

/** Rejects with a DialError. */
async function subscribe(client: MqttClient, rooms: readonly string[]): Promise<void> {
  const topics = rooms.map((room) => [`${room}/+`, { qos: 1, nl: true, rh: 2 }] as const);
  const granted = await client.subscribeAsync(Object.fromEntries(topics)).catch((error: Error) => {
    throw toDialError(error);
  });
  const refused = granted.find(({ qos }) => qos >= 128)?.topic;
  if (refused !== undefined) throw new DialError("refused", `The broker refused to subscribe to ${refused}.`);
}

function toDialError(error: Error & { readonly code?: unknown }): DialError {
  const { code, message } = error;
  if (REFUSED.includes(code)) return new DialError("refused", `The broker refused: ${message}`);
  if (UNSUPPORTED_VERSION.includes(code)) return new DialError("refused", message, Number(code));
  if (typeof code === "string" && /CERT|SELF_SIGNED|UNABLE_TO_(?:GET|VERIFY)/.test(code)) {
    return new DialError("certificate", message);
  }
  return new DialError(/connack timeout/.test(message) ? "timeout" : "unreachable", message || String(code));
}

function createChannel(session: Session, { name, rooms }: MqttSettings, tools: ChannelTools): Channel {
  const { client, kept, maxPacketBytes, subscribed } = session;
  const abilities = {
    ...ABILITIES,
    text: { max: Math.min(MAX_TEXT_BYTES, maxPacketBytes - RESERVE_BYTES), unit: "bytes" },
  } as const;
  const unacknowledged = createUnacknowledged(tools.clock);
  let skip = (): void => {};
  const queue = createPostQueue(async () => {
    unacknowledged.clear();
    skip();
    await client.endAsync(!client.connected);
  });
  const receive: Receive = (packet, done) => {
    const post = toPost(packet, name, tools);
    if (post === undefined || !rooms.includes(post.room)) return done();
    // Packets come one after the other: the end of the connection is among those that follow.
    skip = () => done(new Error("The channel has closed."));
    if (queue.ended) return skip();
    unacknowledged.hold(post, () => {
      skip = () => {};
      done();
    });
    queue.push(post);
  };
  client.handleMessage = receive;
  for (const [packet, done] of kept) receive(packet, done);
  client.on("close", () => queue.end(ABNORMAL_CLOSURE, "The broker closed the connection."));
  subscribed.catch((error: DialError) => queue.end(ABNORMAL_CLOSURE, error.message));

  return {
    abilities,
    self: { id: name, name },
    posts: queue.posts,
    acknowledge: unacknowledged.acknowledge,
    closed: queue.closed,
    close: queue.end,
    async post(draft) {
      if (queue.ended) throw new ChannelError("closed", "The channel has closed.");
      checkDraft(draft, abilities);
      if (!rooms.includes(draft.room)) throw new ChannelError("no-access", `${draft.room} is not one of the rooms.`);
      const missing = (draft.mentions ?? []).map((one) => one.name).filter((one) => !mentionsName(draft.text, one));
      const text = [...missing.map((one) => `@${one}`), draft.text].join(" ");
      const key = draft.key ?? tools.uniqueId();
      await Promise.race([
        publish(client, `${draft.room}/${name}`, text, key),
        queue.closed.then(() => Promise.reject(new Error("The connection closed before the broker answered."))),
      ]);
      return { id: toId(name, key) };
    },
  };
}

/** Resolves when the broker has taken it. */
async function publish(client: MqttClient, topic: string, text: string, key: string): Promise<void> {
  const properties = { payloadFormatIndicator: true, contentType: "text/plain", userProperties: { id: key } };
  try {
    await client.publishAsync(topic, text, { qos: 1, properties });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const reason = error instanceof Error ? error.message : String(error);
    if (RATE_LIMITED.includes(code)) throw new ChannelError("rate-limited", reason, { retryAfterMs: RETRY_AFTER_MS });
    if (REFUSED.includes(code)) throw new ChannelError("no-access", `The broker refused the post: ${reason}`);
    if (code === 149) throw new ChannelError("refused", `The broker refused the post: ${reason}`);
    throw error;
  }
}

/** Senders choose the keys of their posts: they are unique for one sender at most. */
function toId(sender: string, key: string): string {
  return `${sender}/${key}`;
}

function toPost(packet: IPublishPacket, name: string, tools: ChannelTools): Post | undefined {
  const slash = packet.topic.lastIndexOf("/");
  const sender = packet.topic.slice(slash + 1);
  const text = decodeText(packet.payload);
  // A retained post would be received again with every connection.
  if (packet.retain || sender === "" || text === undefined) return undefined;
  const key = packet.properties?.userProperties?.id;
  return {
    id: typeof key === "string" ? toId(sender, key) : tools.uniqueId(),
    room: packet.topic.slice(0, slash),
    direct: false,
    sender: { id: sender, name: sender, bot: false, self: sender === name, verified: false },
    text,
    mentions: findMentions(text, name),
    files: [],
    at: tools.clock.now(),
  };
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

function decodeText(payload: string | Buffer): string | undefined {
  try {
    return typeof payload === "string" ? payload : UTF8.decode(payload);
  } catch {
    return undefined;
  }
}
