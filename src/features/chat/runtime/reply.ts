/** Answers that are owed: what becomes of a task is posted where it was asked for, by this process or a later one. */

import type { CarrierHost } from "../../../core/dialects/carrier.ts";
import type { DialectTools } from "../../../core/dialects/contract.ts";
import { toPublicError } from "../../../core/dialects/shared/errors.ts";
import { isObject, type JsonValue } from "../../../core/model/json.ts";
import type { Loss } from "../../../core/model/loss.ts";
import type { Delivery } from "../../../core/model/operation.ts";
import { isInterrupted, isTerminal, type Task } from "../../../core/model/task.ts";
import { ChannelError, type DraftFile, type Post } from "../../../core/wire/channel.ts";
import { toDrafts } from "../a2a-lite/drafts.ts";
import type { Address, LiteMessage, Outgoing } from "../a2a-lite/message.ts";
import { NOTHING, toOutcome, toProgress } from "../a2a-lite/outcome.ts";
import type { Admission } from "./admission.ts";
import type { ChatTask, ChatTasks } from "./chat-tasks.ts";
import type { ChannelEntry } from "./options.ts";
import type { ChannelOutbox } from "./outbox.ts";

/** How long a status is shown at least: where it is edited, and where every status is a post of its own. */
const EDIT_MS = 1_000;
const REPOST_MS = 10_000;
/** Where a post takes longer than this, one that only says that work has begun waits: the result may come first. */
const FAST_MS = 100;
const ACK_MS = 1_000;
/** A status takes the time of this many posts, so that results find room beside statuses. */
const POSTS_PER_STATUS = 2;

/** What the parts of the serving side share. */
export interface ServingTools {
  readonly entry: ChannelEntry;
  readonly host: CarrierHost;
  readonly tools: DialectTools;
  readonly outbox: ChannelOutbox;
  readonly tasks: ChatTasks;
  readonly admission: Admission;
}

/** Where the answer to a message goes, and what it is about: the address of its delivery. */
interface ReplyAddress extends Address {
  readonly known: ChatTask;
}

export function addressOf(post: Post, known: ChatTask): ReplyAddress {
  return { ...toAddress(post), known };
}

export function toAddress({ direct, id, room, sender, thread }: Post): Address {
  const peer = { id: sender.id, name: sender.name, bot: sender.bot };
  return { room, thread, direct, peer, replyTo: id };
}

/** The state of a task that is shown while it runs. */
interface ShownStatus {
  /** Id of the post. */
  post: string | undefined;
  content: string;
  state: string;
  at: number;
  /** Ends the wait until the status may change. */
  cancel: () => void;
  acknowledged: boolean;
  /** Ends the wait before the task is acknowledged. */
  cancelAck: () => void;
  /** Aborted when the delivery that shows it ends. */
  signal: AbortSignal;
}

const NONE = (): void => {};

export class Replies {
  readonly #options: ServingTools;
  /** By the id of the task. */
  readonly #shown = new Map<string, ShownStatus>();
  /** Tasks of which a page is being posted. */
  readonly #continued = new Set<string>();

  constructor(options: ServingTools) {
    this.#options = options;
  }

  async deliver(delivery: Delivery): Promise<void> {
    const { record, signal } = delivery;
    const address = decodeAddress(record.address);
    if (address === undefined) return void (await delivery.giveUp(record.cursor, "the address cannot be read"));
    let { cursor } = record;
    // It continues what an earlier delivery has shown, which may not have ended yet.
    const earlier = this.#shown.get(record.taskId);
    if (earlier !== undefined) earlier.signal = signal;
    try {
      if (cursor === 0) await this.#acknowledge(address, signal);
      while (!signal.aborted) {
        const last = (await delivery.read(cursor))?.at(-1)?.number;
        const task = await delivery.task(last);
        if (task === undefined) {
          this.#forget(record.taskId);
          return void (await delivery.done());
        }
        if (last === undefined) return void (await delivery.release(cursor));
        const { state } = task.status;
        if (isTerminal(state) || isInterrupted(state)) {
          await this.#show(address, task, last, signal);
          if (isTerminal(state)) return void (await delivery.done());
        } else await this.#showProgress(address, task, signal);
        cursor = last;
        if (!(await delivery.hold(cursor))) return;
      }
    } catch (error) {
      if (!signal.aborted) await this.#fail(delivery, cursor, error);
    } finally {
      if (signal.aborted && this.#shown.get(record.taskId)?.signal === signal) this.#forget(record.taskId);
    }
  }

  /** Posts once more how a task has ended. */
  repeat(address: ReplyAddress, task: Task): void {
    this.#post(address, this.#outcome(address, task), `${task.id}/${address.replyTo}`).catch((error: unknown) => {
      this.#options.tools.log.warn(
        { err: error, channel: this.#options.entry.name },
        "A result could not be repeated.",
      );
    });
  }

  /** Posts the next page of a long answer, unless one is being posted; false if there is none. */
  async continue(address: ReplyAddress, task: Task): Promise<boolean> {
    const { outbox, tasks } = this.#options;
    const page = ((await tasks.read(task.id))?.page ?? 0) + 1;
    const outcome = { ...this.#outcome(address, task), page };
    if (!isTerminal(task.status.state) || outbox.abilities === undefined) return false;
    if (toDrafts({ to: address, ...outcome }, outbox.abilities, "").length === 0) return false;
    if (this.#continued.has(task.id)) return true;
    this.#continued.add(task.id);
    void this.#postPage(address, task.id, outcome)
      .catch((error: unknown) => {
        const { entry, tools } = this.#options;
        tools.log.warn({ err: error, channel: entry.name }, "A result could not be continued.");
      })
      .finally(() => this.#continued.delete(task.id));
    return true;
  }

  async #postPage(
    address: ReplyAddress,
    task: string,
    outcome: ReturnType<typeof toOutcome> & { readonly page: number },
  ) {
    const { page } = outcome;
    await this.#post(address, outcome, `${task}/page/${page}`);
    await this.#options.tasks.update(address.known, { page });
  }

  close(): void {
    for (const { cancel, cancelAck } of this.#shown.values()) {
      cancel();
      cancelAck();
    }
  }

  async #acknowledge(address: ReplyAddress, signal: AbortSignal): Promise<void> {
    const { task, theirs } = address.known;
    const shown = this.#shownOf(task, signal);
    const isSlow = this.#isSlow(address);
    if (isSlow) shown.at = this.#options.tools.clock.now() - this.#statusMs() + this.#firstStatusMs();
    if (theirs === undefined) return;
    const status = (await this.#options.tasks.read(task))?.status;
    if (status === undefined && !shown.acknowledged) {
      const acknowledge = async () => {
        await this.#post(address, { content: { ...NOTHING, type: "ack", task: theirs } }, `${task}/ack`, signal);
        shown.acknowledged = true;
      };
      if (!isSlow) await acknowledge();
      else shown.cancelAck = this.#options.tools.clock.after(ACK_MS, () => void acknowledge().catch(() => {}));
    }
    if (status !== undefined || isSlow) return;
    const accepted = { ...NOTHING, type: "status", task: theirs, state: "accepted" } as const;
    await this.#showStatus(address, shown, accepted, `${task}/accepted`);
  }

  /** Posts are so few here that each must say something. */
  #isSlow({ room }: ReplyAddress): boolean {
    const { outbox } = this.#options;
    const { perMs, posts } = outbox.abilities?.rate ?? { perMs: 0, posts: 1 };
    return perMs / posts > FAST_MS || outbox.isSlow(room);
  }

  /** Posts how a task ended, or what it asks. */
  async #show(address: ReplyAddress, task: Task, last: number, signal: AbortSignal): Promise<void> {
    this.#forget(task.id);
    const { content, files = [] } = this.#outcome(address, task);
    const key = `${task.id}/${last}`;
    try {
      await this.#post(address, { content, files }, key, signal);
    } catch (error) {
      if (!isRefused(error) || files.length === 0) throw error;
      await this.#post(address, { content: withoutFiles(content, files) }, `${key}/text`, signal);
    }
  }

  #forget(task: string): void {
    this.#shown.get(task)?.cancel();
    this.#shown.get(task)?.cancelAck();
    this.#shown.delete(task);
  }

  /** A task whose losses are refused is shown as failed. */
  #outcome({ known }: ReplyAddress, task: Task): Pick<Outgoing, "content" | "files"> {
    const losses: Loss[] = [];
    const outcome = toOutcome(task, known, losses);
    try {
      this.#options.host.report(losses);
      return outcome;
    } catch (error) {
      const parts = [{ text: toPublicError(error).message }];
      const message = { messageId: "", role: "ROLE_AGENT", parts } as const;
      return toOutcome({ ...task, artifacts: [], status: { state: "TASK_STATE_FAILED", message } }, known, losses);
    }
  }

  async #showProgress(address: ReplyAddress, task: Task, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options.tools;
    const edits = this.#options.outbox.abilities?.edits === true;
    const content = toProgress(task, address.known.theirs, edits);
    if (content === undefined) return;
    const shown = this.#shownOf(task.id, signal);
    if (shown.post === undefined) await this.#readShown(task.id, shown);
    shown.cancel();
    const text = JSON.stringify(content);
    if (text === shown.content) return;
    const isNewState = !edits && shown.state !== task.status.state && !this.#isSlow(address);
    const wait = isNewState ? 0 : shown.at + this.#statusMs() - clock.now();
    shown.state = task.status.state;
    if (wait <= 0) return this.#showStatus(address, shown, content);
    this.#showLater(address, shown, content, wait);
  }

  /** Posts the status after a while, unless a newer one comes first or the task ends. */
  #showLater(address: ReplyAddress, shown: ShownStatus, content: LiteMessage | string, wait: number): void {
    if (this.#shown.get(address.known.task) !== shown) return;
    shown.cancel();
    shown.cancel = this.#options.tools.clock.after(wait, () => {
      this.#showStatus(address, shown, content).catch(() => {});
    });
  }

  /** What an earlier process has shown is not posted again. */
  async #readShown(task: string, shown: ShownStatus): Promise<void> {
    const { tasks, tools } = this.#options;
    const status = (await tasks.read(task))?.status;
    if (status !== undefined) Object.assign(shown, status, { at: tools.clock.now() });
  }

  /** A status that cannot be posted is not missed: the next one, or the result, says more. */
  async #showStatus(
    address: ReplyAddress,
    shown: ShownStatus,
    content: LiteMessage | string,
    key?: string,
  ): Promise<void> {
    const { outbox, tasks, tools } = this.#options;
    const { signal, state } = shown;
    // Before the first connection it is not known whether it can be edited: the outbox knows then.
    const edits = outbox.abilities?.edits === false ? undefined : shown.post;
    const text = JSON.stringify(content);
    shown.content = text;
    shown.at = tools.clock.now();
    try {
      const post = await this.#post(address, { content, progress: true }, key, signal, edits);
      shown.post = post;
      shown.cancelAck();
      await tasks.update(address.known, { status: { post, content: text, state } });
    } catch (error) {
      if (signal.aborted || !(error instanceof ChannelError)) throw error;
      // There was no room for it: an agent that says nothing new would seem to do nothing.
      if (error.code === "rate-limited" && shown.content === text)
        return this.#showLater(address, shown, content, this.#statusMs());
      if (error.code !== "refused") return;
      // It may have been deleted, and networks limit how long and how often a post may be edited.
      shown.post = undefined;
      await tasks.update(address.known, { status: undefined });
      if (edits !== undefined) await this.#showStatus(address, shown, content);
    }
  }

  /** Resolves with the id of the post. */
  async #post(
    address: ReplyAddress,
    { content, ...more }: Pick<Outgoing, "content" | "files" | "progress" | "page">,
    key: string | undefined,
    signal?: AbortSignal,
    edits?: string,
  ): Promise<string> {
    const { admission, outbox, tasks } = this.#options;
    const { known, ...to } = address;
    const { id } = await outbox.send({ to, content, ...more, key, edits }, signal);
    if (typeof content === "string") admission.noteAnswer(to.peer.id);
    const { replies, threads = false } = outbox.abilities ?? { replies: true };
    if ((replies || threads) && id !== edits) await tasks.putEntry(to.room, id, { task: known.task, own: true });
    return id;
  }

  #statusMs(): number {
    const { abilities } = this.#options.outbox;
    if (abilities === undefined) return REPOST_MS;
    return Math.max(abilities.edits ? EDIT_MS : REPOST_MS, this.#firstStatusMs());
  }

  /** How long the first status waits for the result, which would replace it. */
  #firstStatusMs(): number {
    const { perMs, posts } = this.#options.outbox.abilities?.rate ?? { perMs: 0, posts: 1 };
    return Math.max(ACK_MS, (POSTS_PER_STATUS * perMs) / posts);
  }

  #shownOf(task: string, signal: AbortSignal): ShownStatus {
    const known = this.#shown.get(task);
    if (known !== undefined) return known;
    const shown = {
      post: undefined,
      content: "",
      state: "",
      at: Number.NEGATIVE_INFINITY,
      acknowledged: false,
      cancel: NONE,
      cancelAck: NONE,
      signal,
    };
    this.#shown.set(task, shown);
    return shown;
  }

  async #fail(delivery: Delivery, cursor: number, error: unknown): Promise<void> {
    if (!(error instanceof ChannelError))
      this.#options.tools.log.warn({ err: error }, "An answer could not be posted.");
    if (isRefused(error)) await delivery.giveUp(cursor, error.message);
    else await delivery.retry(cursor, "the channel did not accept it");
  }
}

function isRefused(error: unknown): error is ChannelError {
  return error instanceof ChannelError && (error.code === "refused" || error.code === "no-access");
}

/** The message without files, for a network that refuses them. */
function withoutFiles(content: LiteMessage | string, files: readonly DraftFile[]): LiteMessage | string {
  const note = `(The network refuses ${files.map(({ name }) => name).join(", ")}.)`;
  const addNote = (text: string) => (text === "" ? note : `${text}\n\n${note}`);
  return typeof content === "string" ? addNote(content) : { ...content, body: addNote(content.body) };
}

/** Undefined for an address of another format. */
function decodeAddress(text: string): ReplyAddress | undefined {
  const value = JSON.parse(text) as JsonValue;
  const isAddress = isObject(value) && typeof value.room === "string" && isObject(value.peer) && isObject(value.known);
  return isAddress ? (JSON.parse(text) as ReplyAddress) : undefined;
}
