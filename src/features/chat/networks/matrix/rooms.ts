/** Rooms that a configuration names: who is in them, and which of them can be used. */

import type { Log } from "../../../../core/model/ports.ts";
import { type MatrixApi, MatrixError } from "./api.ts";
import type { MatrixEvent } from "./content.ts";

interface MatrixRoom {
  readonly id: string;
  /** As it is configured: an id or an alias. */
  readonly name: string;
  joined: boolean;
  encrypted: boolean;
  /** Display names by id. */
  readonly members: Map<string, string>;
}

export class MatrixRooms {
  readonly #api: MatrixApi;
  readonly #self: string;
  readonly #log: Log;
  readonly #rooms = new Map<string, MatrixRoom>();

  constructor(api: MatrixApi, self: string, log: Log) {
    this.#api = api;
    this.#self = self;
    this.#log = log;
  }

  get ids(): readonly string[] {
    return [...this.#rooms.keys()];
  }

  byId(id: string): MatrixRoom | undefined {
    return this.#rooms.get(id);
  }

  /** A room that this participant is in. */
  find(name: string): MatrixRoom | undefined {
    return [...this.#rooms.values()].find((room) => room.joined && (room.name === name || room.id === name));
  }

  async enter(names: readonly string[], signal: AbortSignal): Promise<void> {
    for (const name of names) {
      const id = await this.#resolve(name, signal);
      if (id === undefined) {
        this.#log.warn({ room: name }, `The homeserver does not know the Matrix room ${name}; check \`rooms\`.`);
        continue;
      }
      const room = { id, name, joined: false, encrypted: false, members: new Map<string, string>() };
      this.#rooms.set(id, room);
      await this.join(room, signal);
    }
  }

  /** Joins, also by accepting an invitation. A room that cannot be joined is reported, and joined when it invites. */
  async join(room: MatrixRoom, signal: AbortSignal): Promise<void> {
    const { id, name } = room;
    const path = encodeURIComponent(id);
    try {
      await this.#api.post(`v3/join/${path}`, {}, signal);
    } catch (error) {
      if (!(error instanceof MatrixError) || (error.status !== 403 && error.status !== 404)) throw error;
      this.#log.warn({ room: name }, `${this.#self} may not join the Matrix room ${name}; invite it there.`);
      return;
    }
    room.joined = true;
    const { joined } = await this.#api.get<{ joined: Readonly<Record<string, { display_name?: string | null }>> }>(
      `v3/rooms/${path}/joined_members`,
      { signal },
    );
    for (const [member, { display_name }] of Object.entries(joined)) room.members.set(member, display_name ?? member);
    if ((await this.#api.find(`v3/rooms/${path}/state/m.room.encryption`, signal)) !== undefined) this.#reject(room);
  }

  /** A change of the room: who is in it, and whether it is encrypted. */
  apply(room: MatrixRoom, { content, state_key, type }: MatrixEvent): void {
    if (type === "m.room.encryption" && !room.encrypted) this.#reject(room);
    if (type !== "m.room.member" || state_key === undefined) return;
    const { displayname, membership } = content;
    if (membership === "join") room.members.set(state_key, typeof displayname === "string" ? displayname : state_key);
    else room.members.delete(state_key);
    if (state_key === this.#self) room.joined = membership === "join";
  }

  #reject(room: MatrixRoom): void {
    room.encrypted = true;
    this.#log.warn(
      { room: room.name },
      `The Matrix room ${room.name} is encrypted and is not used: encryption cannot be switched off, so create a room without it.`,
    );
  }

  async #resolve(name: string, signal: AbortSignal): Promise<string | undefined> {
    if (name.startsWith("!")) return name;
    const path = `v3/directory/room/${encodeURIComponent(name)}`;
    return (await this.#api.find<{ room_id: string }>(path, signal))?.room_id;
  }
}
