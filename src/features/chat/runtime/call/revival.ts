/** Continues tasks of earlier processes when something arrives about them, which may be before they are asked for. */

import type { ChatAddress } from "../../a2a-lite/address.ts";
import type { Received } from "../../a2a-lite/message.ts";
import type { ParticipantCaller } from "./participant-caller.ts";
import type { TaskRecords } from "./task-records.ts";
import type { CallTools } from "./tools.ts";

/** Tasks that are looked for at a time, and messages about one of them. */
const MAX_TASKS = 200;
const MAX_MESSAGES = 32;

interface RevivalOptions extends Pick<CallTools, "drop"> {
  readonly network: string;
  readonly records: TaskRecords;
  readonly findPeer: (address: ChatAddress) => ParticipantCaller | undefined;
}

export class Revival {
  readonly #options: RevivalOptions;
  /** Messages by task, in the order of their arrival. */
  readonly #waiting = new Map<string, Received[]>();
  readonly #reviving = new Set<Promise<void>>();

  constructor(options: RevivalOptions) {
    this.#options = options;
  }

  /** The task is not in memory. */
  receive(task: string, received: Received): void {
    const waiting = this.#waiting.get(task) ?? [];
    if (waiting.length >= MAX_MESSAGES || (waiting.length === 0 && this.#waiting.size >= MAX_TASKS)) {
      this.#options.drop(received.post.sender.id, "too-many");
      return;
    }
    waiting.push(received);
    if (waiting.length > 1) return;
    this.#waiting.set(task, waiting);
    const revived: Promise<void> = this.#revive(task).finally(() => this.#reviving.delete(revived));
    this.#reviving.add(revived);
  }

  /** Resolves when the tasks of all messages so far have got them. */
  async done(): Promise<void> {
    await Promise.all(this.#reviving);
  }

  /** A reply without a marker, to a post of this participant or of any other. */
  receiveReply(to: string, received: Received): void {
    const { records } = this.#options;
    records.findByPost(received.post.room, to).then(
      (task) => {
        if (task !== undefined) this.receive(task, received);
      },
      () => {},
    );
  }

  async #revive(id: string): Promise<void> {
    const { drop, findPeer, network, records } = this.#options;
    const record = await records.read(id).catch(() => undefined);
    const peer = record === undefined ? undefined : findPeer({ network, room: record.room, participant: record.peer });
    const task = await peer?.find(id).catch(() => undefined);
    const waiting = this.#waiting.get(id) ?? [];
    this.#waiting.delete(id);
    for (const received of waiting) {
      const sender = received.post.sender.id;
      if (task === undefined) drop(sender, "unknown-task");
      else if (sender !== record?.peer) drop(sender, "not-the-peer");
      else if (received.parsed.kind !== "chat") task.receive(received);
      else if (task.takesProse) task.receiveProse(received);
    }
  }
}
