/**
 * A Matrix homeserver with the parts of the client-server API that a bot uses, and its rules: membership, invitations,
 * 65,536 bytes for an event, a token bucket for messages, transactions, authenticated media.
 */
import { type SimulatedReply, type SimulatedRequest, startServer } from "./http-server.ts";

interface MatrixServerOptions {
  /** Messages of one account: at once, and refilled per second. Default: those of Synapse. */
  readonly rate?: { readonly burst: number; readonly perSecond: number };
  readonly maxUpload?: number;
}

interface StoredEvent {
  readonly type: string;
  readonly event_id: string;
  readonly room_id: string;
  readonly sender: string;
  readonly origin_server_ts: number;
  readonly content: Readonly<Record<string, unknown>>;
  readonly state_key?: string;
  readonly position: number;
}

interface Room {
  readonly id: string;
  readonly alias: string | undefined;
  readonly isPublic: boolean;
  readonly members: Map<string, "join" | "invite" | "leave">;
  encrypted: boolean;
}

export interface MatrixServer {
  readonly url: string;
  /** Resolves the token of a new account `@name:sim`. */
  register(name: string, displayName?: string): string;
  /** Revokes a token. */
  revoke(token: string): void;
  createRoom(options: {
    readonly id: string;
    readonly alias?: string;
    readonly isPublic?: boolean;
    readonly encrypted?: boolean;
    readonly members?: readonly string[];
  }): void;
  invite(room: string, user: string): void;
  membership(room: string, user: string): string | undefined;
  /** As if this user's client had sent it. */
  send(room: string, sender: string, content: Readonly<Record<string, unknown>>, type?: string): string;
  /** The next message is one too many. */
  limitNext(retryAfterMs: number): void;
  /** Message events in order. */
  readonly messages: readonly StoredEvent[];
  close(): Promise<void>;
}

const MAX_EVENT_BYTES = 65_536;
/** `auth_events`, `prev_events`, `hashes`, `signatures` and the like, which count. */
const SERVER_FIELDS_BYTES = 1_500;

export async function startMatrixServer(options: MatrixServerOptions = {}): Promise<MatrixServer> {
  const { maxUpload = 200_000, rate = { burst: 10, perSecond: 0.2 } } = options;
  const users = new Map<string, { readonly id: string; readonly displayName: string | undefined }>();
  const rooms = new Map<string, Room>();
  const events: StoredEvent[] = [];
  const media = new Map<string, { readonly bytes: Buffer; readonly type: string }>();
  const transactions = new Map<string, string>();
  const buckets = new Map<string, { tokens: number; at: number }>();
  const waiting = new Set<() => void>();
  let limited: number | undefined;

  const error = (status: number, errcode: string, text: string, more = {}): SimulatedReply => ({
    status,
    body: { errcode, error: text, ...more },
  });
  const forbidden = (text: string) => error(403, "M_FORBIDDEN", text);
  const notFound = () => error(404, "M_NOT_FOUND", "Not found.");

  function append(event: Omit<StoredEvent, "event_id" | "origin_server_ts" | "position">): string {
    const position = events.length + 1;
    const event_id = `$event-${position}`;
    events.push({ ...event, event_id, origin_server_ts: Date.now(), position });
    for (const wake of waiting) wake();
    return event_id;
  }

  function setMember(room: Room, user: string, membership: "join" | "invite" | "leave"): void {
    room.members.set(user, membership);
    const displayname = [...users.values()].find(({ id }) => id === user)?.displayName;
    append({
      type: "m.room.member",
      room_id: room.id,
      sender: user,
      state_key: user,
      content: { membership, displayname },
    });
  }

  function takeToken(user: string): number | undefined {
    if (limited !== undefined) {
      const wait = limited;
      limited = undefined;
      return wait;
    }
    const bucket = buckets.get(user) ?? { tokens: rate.burst, at: Date.now() };
    const tokens = Math.min(rate.burst, bucket.tokens + ((Date.now() - bucket.at) / 1000) * rate.perSecond);
    buckets.set(user, { tokens: tokens < 1 ? tokens : tokens - 1, at: Date.now() });
    return tokens < 1 ? Math.ceil(((1 - tokens) / rate.perSecond) * 1000) : undefined;
  }

  function sendMessage(user: string, room: Room, path: string, request: SimulatedRequest): SimulatedReply {
    const { bytes, json } = request;
    const known = transactions.get(`${user} ${path}`);
    if (known !== undefined) return { body: { event_id: known } };
    if (room.members.get(user) !== "join") return forbidden(`User ${user} not in room ${room.id}`);
    if (json === undefined) return error(400, "M_NOT_JSON", "Content not JSON.");
    const retry_after_ms = takeToken(user);
    if (retry_after_ms !== undefined) {
      return error(429, "M_LIMIT_EXCEEDED", "Too Many Requests", { retry_after_ms });
    }
    if (bytes.length + SERVER_FIELDS_BYTES > MAX_EVENT_BYTES) return error(413, "M_TOO_LARGE", "event too large");
    const event_id = append({ type: "m.room.message", room_id: room.id, sender: user, content: json });
    transactions.set(`${user} ${path}`, event_id);
    return { body: { event_id } };
  }

  function collect(user: string, since: number | undefined, filter: SyncFilter) {
    const join: Record<string, object> = {};
    const invite: Record<string, object> = {};
    for (const room of rooms.values()) {
      if (room.members.get(user) === "invite") {
        const isNew = events.some((e) => e.room_id === room.id && e.state_key === user && e.position > (since ?? 0));
        if (isNew) invite[room.id] = { invite_state: { events: [] } };
      }
      if (room.members.get(user) !== "join" || filter.room?.rooms?.includes(room.id) === false) continue;
      const fresh = events.filter(({ position, room_id }) => room_id === room.id && position > (since ?? 0));
      const limit = filter.room?.timeline?.limit ?? 10;
      const timeline = limit === 0 ? [] : fresh.slice(-limit);
      if (fresh.length === 0) continue;
      const first = timeline[0]?.position ?? events.length + 1;
      join[room.id] = {
        timeline: { events: timeline, limited: timeline.length < fresh.length, prev_batch: `s${first - 1}` },
        state: { events: fresh.filter(({ position, state_key }) => state_key !== undefined && position < first) },
      };
    }
    return { join, invite };
  }

  async function sync(user: string, { query, signal }: SimulatedRequest): Promise<SimulatedReply> {
    const filter = JSON.parse(query.get("filter") ?? "{}") as SyncFilter;
    const token = query.get("since");
    if (token !== null && !/^s\d+$/.test(token)) return error(400, "M_INVALID_PARAM", "Invalid stream token");
    const since = token === null ? undefined : Number(token.slice(1));
    const until = Date.now() + Number(query.get("timeout") ?? 0);
    for (;;) {
      const found = collect(user, since, filter);
      const isEmpty = Object.keys(found.join).length + Object.keys(found.invite).length === 0;
      if (!isEmpty || since === undefined || Date.now() >= until || signal.aborted) {
        return { body: { next_batch: `s${events.length}`, rooms: found } };
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, until - Date.now());
        const wake = (): void => {
          clearTimeout(timer);
          waiting.delete(wake);
          resolve();
        };
        waiting.add(wake);
        signal.addEventListener("abort", wake);
      });
    }
  }

  function page(room: Room, query: URLSearchParams): SimulatedReply {
    const [from, to] = [query.get("from") ?? "", query.get("to") ?? "s0"].map((token) =>
      /^s\d+$/.test(token) ? Number(token.slice(1)) : Number.NaN,
    );
    if (from === undefined || to === undefined || Number.isNaN(from + to))
      return error(400, "M_INVALID_PARAM", "Invalid stream token");
    const limit = Number(query.get("limit") ?? 10);
    const isForward = query.get("dir") === "f";
    const [low, high] = isForward ? [from, to] : [to, from];
    const found = events.filter(({ position, room_id }) => room_id === room.id && position > low && position <= high);
    const chunk = (isForward ? found : found.reverse()).slice(0, limit);
    const last = chunk.at(-1);
    const end = last === undefined ? {} : { end: `s${isForward ? last.position : last.position - 1}` };
    return { body: { chunk, start: `s${from}`, ...end } };
  }

  /** Own events only: others take a power level that no one has here. */
  function redact(user: string, id: string): SimulatedReply {
    const at = events.findIndex(({ event_id, sender }) => event_id === id && sender === user);
    const event = events[at];
    if (event === undefined) return forbidden("You don't have permission to redact events");
    events[at] = { ...event, content: {} };
    return {
      body: { event_id: append({ type: "m.room.redaction", room_id: event.room_id, sender: user, content: {} }) },
    };
  }

  function ofRoom(user: string, room: Room, rest: string, request: SimulatedRequest): SimulatedReply {
    if (request.method === "PUT" && rest.startsWith("/send/m.room.message/")) {
      return sendMessage(user, room, `${room.id}${rest}`, request);
    }
    if (room.members.get(user) !== "join") return forbidden(`User ${user} not in room ${room.id}`);
    const [, redacted] = /^\/redact\/([^/]+)\/[^/]+$/.exec(rest) ?? [];
    if (redacted !== undefined && request.method === "PUT") return redact(user, decodeURIComponent(redacted));
    if (rest === "/joined_members") {
      const joined = [...room.members].filter(([, membership]) => membership === "join");
      const nameOf = (member: string) => [...users.values()].find(({ id }) => id === member)?.displayName ?? null;
      return { body: { joined: Object.fromEntries(joined.map(([id]) => [id, { display_name: nameOf(id) }])) } };
    }
    if (rest === "/messages") return page(room, request.query);
    if (rest === "/state/m.room.encryption" && room.encrypted) return { body: { algorithm: "m.megolm.v1.aes-sha2" } };
    return notFound();
  }

  async function answer(request: SimulatedRequest): Promise<SimulatedReply> {
    const { bytes, headers, method, path } = request;
    const token = /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1];
    if (token === undefined) return error(401, "M_MISSING_TOKEN", "Missing access token");
    const user = users.get(token)?.id;
    if (user === undefined) return error(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.");
    const parts = path.split("/").map(decodeURIComponent);
    const at = (prefix: string): string | undefined =>
      path.startsWith(prefix) ? parts[prefix.split("/").length - 1] : undefined;
    if (path === "/_matrix/client/v3/account/whoami") return { body: { user_id: user } };
    if (path === "/_matrix/client/v3/sync") return sync(user, request);
    if (path === "/_matrix/client/v1/media/config") return { body: { "m.upload.size": maxUpload } };
    if (path === "/_matrix/media/v3/upload" && method === "POST") {
      if (bytes.length > maxUpload) return error(413, "M_TOO_LARGE", "Upload request body is too large");
      const id = `media${media.size + 1}`;
      media.set(id, { bytes, type: headers["content-type"] ?? "" });
      return { body: { content_uri: `mxc://sim/${id}` } };
    }
    const file = media.get(at("/_matrix/client/v1/media/download/sim/") ?? "");
    if (file !== undefined) return { headers: { "content-type": file.type }, body: file.bytes };
    const alias = at("/_matrix/client/v3/directory/room/");
    if (alias !== undefined) {
      const room = [...rooms.values()].find((one) => one.alias === alias);
      return room === undefined ? notFound() : { body: { room_id: room.id, servers: ["sim"] } };
    }
    const profile = at("/_matrix/client/v3/profile/");
    if (profile !== undefined) return { body: { displayname: users.get(token)?.displayName } };
    const joining = at("/_matrix/client/v3/join/");
    if (joining !== undefined) {
      const room = rooms.get(joining);
      if (room === undefined) return notFound();
      const membership = room.members.get(user);
      if (membership === undefined && !room.isPublic) return forbidden("You are not invited to this room.");
      if (membership !== "join") setMember(room, user, "join");
      return { body: { room_id: room.id } };
    }
    const room = rooms.get(at("/_matrix/client/v3/rooms/") ?? "");
    if (room === undefined) return forbidden("Room not found or not visible.");
    return ofRoom(user, room, path.slice(`/_matrix/client/v3/rooms/${encodeURIComponent(room.id)}`.length), request);
  }

  const server = await startServer({ answer });
  return {
    url: server.url,
    register(name, displayName) {
      const token = `syt_${name}_secret`;
      users.set(token, { id: `@${name}:sim`, displayName });
      return token;
    },
    revoke: (token) => {
      users.delete(token);
      for (const wake of waiting) wake();
    },
    createRoom({ alias, encrypted = false, id, isPublic = false, members = [] }) {
      const room: Room = { id, alias, isPublic, encrypted, members: new Map() };
      rooms.set(id, room);
      for (const member of members) setMember(room, member, "join");
    },
    invite(id, user) {
      const room = rooms.get(id);
      if (room !== undefined) setMember(room, user, "invite");
    },
    membership: (id, user) => rooms.get(id)?.members.get(user),
    send(room_id, sender, content, type = "m.room.message") {
      if (type === "m.room.encryption") {
        const room = rooms.get(room_id);
        if (room !== undefined) room.encrypted = true;
        return append({ type, room_id, sender, content, state_key: "" });
      }
      return append({ type, room_id, sender, content });
    },
    limitNext(retryAfterMs) {
      limited = retryAfterMs;
    },
    get messages() {
      return events.filter(({ type }) => type === "m.room.message");
    },
    close: () => server.close(),
  };
}

interface SyncFilter {
  readonly room?: { readonly rooms?: readonly string[]; readonly timeline?: { readonly limit?: number } };
}
