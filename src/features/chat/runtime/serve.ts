/** Serves what participants ask of the agent: cards, tasks, cancellations and plain language. */

import { toPublicError } from "../../../core/dialects/shared/errors.ts";
import { ProtocolError } from "../../../core/model/errors.ts";
import { EXTENSIONS } from "../../../core/model/extensions.ts";
import { omitUndefined } from "../../../core/model/json.ts";
import type { Message } from "../../../core/model/message.ts";
import { isInterrupted, isTerminal, type Task } from "../../../core/model/task.ts";
import { ChannelError, type DraftFile, type Participant, type Post } from "../../../core/wire/channel.ts";
import { toCardMessage } from "../a2a-lite/card.ts";
import { decodeBody } from "../a2a-lite/decode.ts";
import { digest } from "../a2a-lite/digest.ts";
import { DIALECT_NAME } from "../a2a-lite/index.ts";
import { findMarker } from "../a2a-lite/marker.ts";
import { ACCEPTS_DATA, type LiteMessage, type Received } from "../a2a-lite/message.ts";
import { isName, withoutMention } from "../a2a-lite/names.ts";
import { NOTHING } from "../a2a-lite/outcome.ts";
import { toLiteState } from "../a2a-lite/states.ts";
import { type ChatTask, type ChatTasks, placeOf } from "./chat-tasks.ts";
import { readFiles } from "./files.ts";
import { addressOf, type Replies, type ServingTools, toAddress } from "./reply.ts";

/** Messages of one peer that wait while an earlier one is served; more are dropped. */
const MAX_LANE = 50;

type RequestMessage = Extract<LiteMessage, { readonly type: "discover" | "task" | "cancel" }>;
type TaskMessage = Extract<LiteMessage, { readonly type: "task" }>;

/** What a message asks for. */
type Request =
  | { readonly kind: "discover" }
  | { readonly kind: "task"; readonly message: TaskMessage }
  | { readonly kind: "cancel"; readonly theirs: string }
  | { readonly kind: "invalid"; readonly problem: string; readonly theirs: string | undefined }
  | { readonly kind: "chat"; readonly text: string };

interface ChannelServerOptions extends ServingTools {
  readonly replies: Replies;
}

export class ChannelServer {
  readonly #options: ChannelServerOptions;
  readonly #tasks: ChatTasks;
  /** By participant: its messages are served one after the other. */
  readonly #lanes = new Map<string, { last: Promise<void>; size: number }>();
  readonly #logged = new Set<string>();

  constructor(options: ChannelServerOptions) {
    this.#options = options;
    this.#tasks = options.tasks;
  }

  /** Resolves when everything that must outlast this process is stored. Never rejects. */
  serve(received: Received, self: Participant): Promise<void> {
    const { id } = received.post.sender;
    const lane = this.#lanes.get(id) ?? { last: Promise.resolve(), size: 0 };
    if (lane.size >= MAX_LANE) return Promise.resolve();
    this.#lanes.set(id, lane);
    lane.size++;
    lane.last = lane.last
      .then(() => this.#serve(received, self))
      .catch((error: unknown) => {
        this.#options.tools.log.error({ err: error, channel: this.#options.entry.name }, "A post could not be served.");
      })
      .then(() => {
        if (--lane.size === 0) this.#lanes.delete(id);
      });
    return lane.last;
  }

  async #serve(received: Received, self: Participant): Promise<void> {
    const { post } = received;
    const request = this.#read(received, self);
    if (request === undefined) return;
    const addressed = isNamed(received, self) || (await this.#isExpected(post));
    if (request.kind === "chat" && !addressed) return;
    const kind = request.kind === "discover" || request.kind === "chat" ? request.kind : "work";
    const verdict = this.#options.admission.decide({ sender: post.sender, addressed, kind });
    if (verdict === "ignore") return this.#drop(post.sender.bot ? "bot" : "peer");
    const entry = await this.#tasks.entryOf(post.room, post.id);
    if (entry !== undefined && entry.pending !== true) return;
    let task: string | undefined;
    if (verdict === "serve") {
      const answered = this.#answer(request, received, self, entry?.task);
      task = await answered.catch((error: unknown) => this.#refuse(request, post, reasonOf(error)));
    } else this.#refuse(request, post, verdict.notice, verdict.forBots);
    await this.#tasks.putEntry(post.room, post.id, { task });
  }

  /** Undefined for what is never answered: what is for others, and answers, or two agents would answer for ever. */
  #read({ files, parsed, post }: Received, self: Participant): Request | undefined {
    if (parsed.kind === "chat") {
      const text = withoutMention(parsed.text, self);
      return text === "" && files.length === 0 ? undefined : { kind: "chat", text };
    }
    const type = parsed.kind === "message" ? parsed.message.type : parsed.type;
    if (type !== "discover" && type !== "task" && type !== "cancel") {
      this.#options.admission.noteAgent(post.sender);
      return undefined;
    }
    const to = (parsed.kind === "message" ? parsed.message.to : parsed.to) ?? nameBeforeMarker(post.text);
    const isForOthers = to === undefined ? post.mentions.length > 0 : !isName(to, self);
    if (isForOthers && !post.direct && !post.mentions.includes(self.id)) return undefined;
    if (parsed.kind === "invalid") return { kind: "invalid", problem: parsed.problem, theirs: parsed.task };
    const message = parsed.message as RequestMessage;
    if (message.type === "task") return { kind: "task", message };
    return message.type === "cancel" ? { kind: "cancel", theirs: message.task } : { kind: "discover" };
  }

  /** A reply to a post of the agent or to the peer's own request, or the answer to a question in a thread. */
  async #isExpected(post: Post): Promise<boolean> {
    const { replied, known } = await this.#tasksAbout(post);
    if (replied !== undefined) return true;
    if (known === undefined || post.thread === undefined) return false;
    const task = await this.#get(known.task);
    return task !== undefined && isInterrupted(task.status.state);
  }

  /** `replied`: the task that it replies to; `known`: the one of the same peer that it continues. */
  async #tasksAbout(post: Post): Promise<{ readonly replied?: ChatTask; readonly known?: ChatTask }> {
    const { replyTo, room, sender, thread } = post;
    const replied = await this.#tasks.ofPost(room, replyTo, sender.id);
    const isOwn = (about: ChatTask | undefined) => (about?.peer === sender.id ? about : undefined);
    const known =
      isOwn(replied) ??
      (await this.#tasks.newest(placeOf(post))) ??
      isOwn(await this.#tasks.ofPost(room, thread, sender.id));
    return { replied, known };
  }

  /** Resolves with the id of the task that the message is for. `pending`: of the one that it may have been sent to. */
  async #answer(
    request: Request,
    received: Received,
    self: Participant,
    pending?: string,
  ): Promise<string | undefined> {
    const { post } = received;
    switch (request.kind) {
      case "discover":
        return this.#sendCard(post, self);
      case "invalid":
        return this.#refuse(request, post, request.problem);
      case "cancel":
        return this.#cancel(await this.#find(post, request.theirs), post, request.theirs);
      case "task":
        return (
          (await this.#resume(request.message.body, received, request.message, pending)) ??
          (await this.#task(request.message, received))
        );
      case "chat":
        return (await this.#resume(request.text, received, {}, pending)) ?? (await this.#chat(request.text, received));
    }
  }

  /** Completes what an earlier process began with the post, if it did. What it owed is still owed. */
  async #resume(
    text: string,
    received: Received,
    details: TaskDetails,
    pending: string | undefined,
  ): Promise<string | undefined> {
    const begun = await this.#get(this.#messageId(received.post));
    if (begun !== undefined) return begun.id;
    const known = await this.#tasks.read(pending);
    if (known === undefined || (await this.#get(known.task)) === undefined) return undefined;
    // A message that the engine has is recognised by its key.
    return this.#continue(text, received, known, details);
  }

  async #task(message: TaskMessage, received: Received): Promise<string> {
    const { post } = received;
    const names = received.files.map(({ name }) => name);
    const fingerprint = digest(message.body, message.skill, ...names);
    const known = await this.#find(post, message.id);
    const task = known && (await this.#get(known.task));
    const details = {
      theirs: message.id,
      fingerprint,
      skill: message.skill,
      priority: message.priority,
      hops: message.hops,
      data: message.accept?.includes(ACCEPTS_DATA) === true,
    };
    if (known === undefined || task === undefined) return this.#begin(message.body, received, details);
    const isRepeated = known.fingerprint === fingerprint;
    const { state } = task.status;
    if (isTerminal(state) && !isRepeated) return this.#begin(message.body, received, details);
    this.#send(post, { ...NOTHING, type: "ack", task: message.id });
    if (isTerminal(state)) this.#options.replies.repeat(addressOf(post, known), task);
    else if (isInterrupted(state) || !isRepeated) await this.#continue(message.body, received, known, details);
    return known.task;
  }

  /** People answer, cancel and ask in plain language. */
  async #chat(text: string, received: Received): Promise<string | undefined> {
    const { post } = received;
    const { known, replied } = await this.#tasksAbout(post);
    const task = known && (await this.#get(known.task));
    if (known !== undefined && task !== undefined && !isTerminal(task.status.state)) {
      if (CANCEL.test(text)) return this.#cancel(known, post, known.theirs);
      if (isInterrupted(task.status.state)) return this.#continue(text, received, known);
    }
    if (known !== undefined && task !== undefined && MORE.test(text)) {
      if (await this.#options.replies.continue(addressOf(post, known), task)) return task.id;
    }
    return this.#begin(text, received, { contextId: replied?.contextId });
  }

  /** The task is known under the peer's id before it exists, and its id is that of the post: it begins once. */
  async #begin(text: string, received: Received, details: TaskDetails): Promise<string> {
    const { post } = received;
    const { theirs, fingerprint, contextId = this.#contextOf(post), data } = details;
    const message = await this.#message(text, received, details);
    const id = message.messageId;
    const known = { task: id, contextId, peer: post.sender.id, theirs, fingerprint, data };
    await this.#tasks.add(placeOf(post), known);
    await this.#dispatch({ ...message, contextId }, known, post, details, id);
    return id;
  }

  async #continue(text: string, received: Received, known: ChatTask, details: TaskDetails = {}): Promise<string> {
    const { post } = received;
    const message = { ...(await this.#message(text, received, details)), taskId: known.task };
    await this.#tasks.putEntry(post.room, post.id, { task: known.task, pending: true });
    await this.#dispatch(message, known, post, details);
    return known.task;
  }

  #messageId({ id, room }: Post): string {
    return digest(this.#options.entry.name, room, id);
  }

  async #message(text: string, { files, post }: Received, { priority, skill }: TaskDetails): Promise<Message> {
    const parts = [...decodeBody(text), ...(await readFiles(files, this.#options.tools.clock))];
    return {
      messageId: this.#messageId(post),
      role: "ROLE_USER",
      parts: parts.length === 0 ? [{ text }] : parts,
      ...((skill !== undefined || priority !== undefined) && { metadata: omitUndefined({ skill, priority }) }),
    };
  }

  async #dispatch(message: Message, known: ChatTask, post: Post, { hops = 0 }: TaskDetails, chosenId?: string) {
    const address = JSON.stringify(addressOf(post, known));
    const replyTo = { id: "answer", route: this.#options.entry.name, address, wants: "events" } as const;
    const metadata = hops === 0 ? undefined : { [EXTENSIONS.hops]: { hops, ancestors: [] } };
    await this.#admit().dispatch(
      {
        kind: "send",
        message,
        configuration: { returnImmediately: true },
        replyTo,
        ...omitUndefined({ chosenId, metadata }),
      },
      { ...this.#call(), idempotencyKey: message.messageId },
    );
  }

  /** The end of a cancelled task is delivered like any other end. */
  async #cancel(known: ChatTask | undefined, post: Post, theirs: string | undefined): Promise<undefined> {
    const task = known && (await this.#get(known.task));
    if (task === undefined) throw new ProtocolError("TASK_NOT_FOUND", "Task not found.");
    try {
      if (isTerminal(task.status.state)) throw new ProtocolError("TASK_NOT_CANCELABLE", "it has ended.");
      await this.#admit().dispatch({ kind: "cancel", id: task.id }, this.#call());
    } catch (error) {
      const body = `The task cannot be cancelled: ${reasonOf(error)}`;
      const state = toLiteState(task.status.state);
      this.#send(post, theirs === undefined ? body : { ...NOTHING, type: "status", task: theirs, state, body });
    }
  }

  /** The task that the peer calls so, here or in the thread that began at a post about it. */
  async #find(post: Post, theirs: string): Promise<ChatTask | undefined> {
    const known = await this.#tasks.named(placeOf(post), theirs);
    if (known !== undefined) return known;
    const { known: about } = await this.#tasksAbout(post);
    return about?.theirs === theirs ? about : undefined;
  }

  async #get(id: string): Promise<Task | undefined> {
    try {
      return await this.#service().dispatch({ kind: "get", id, historyLength: 0 }, this.#call());
    } catch (error) {
      if (ProtocolError.is(error) && error.code === "TASK_NOT_FOUND") return undefined;
      throw error;
    }
  }

  #refuse(request: Request, post: Post, reason: string, forBots = false): undefined {
    const theirs =
      request.kind === "task"
        ? request.message.id
        : request.kind === "chat" || request.kind === "discover"
          ? undefined
          : (request.theirs ?? "unknown");
    if (theirs !== undefined)
      this.#send(post, { ...NOTHING, type: "status", task: theirs, state: "rejected", body: reason });
    // A bot would answer it.
    else if (!post.sender.bot || forBots) this.#send(post, reason);
  }

  #sendCard(post: Post, self: Participant): undefined {
    const { entry, outbox } = this.#options;
    const { abilities } = outbox;
    if (abilities === undefined) return;
    const { content, files } = toCardMessage(this.#service().card, { network: entry.network, self, abilities });
    this.#send(post, content, files);
  }

  #send(post: Post, content: LiteMessage | string, files: readonly DraftFile[] = []): void {
    const to = toAddress(post);
    const key = digest(post.room, post.id, typeof content === "string" ? "chat" : content.type);
    this.#options.outbox.send({ to, content, files, key }).catch((error: unknown) => {
      if (error instanceof ChannelError && error.code === "rate-limited") return this.#drop("busy");
      this.#options.tools.log.warn({ err: error, channel: this.#options.entry.name }, "An answer could not be posted.");
    });
  }

  /** The context of a message without a task: that of its thread, or of the participant in the room. */
  #contextOf({ room, sender, thread }: Post): string {
    const { name } = this.#options.entry;
    return thread === undefined ? digest(name, room, "peer", sender.id) : digest(name, room, "thread", thread);
  }

  #service() {
    const { entry, host } = this.#options;
    const service = host.agents.get(entry.agent);
    if (service === undefined) throw new ProtocolError("METHOD_NOT_FOUND", "Agent not found.");
    return service;
  }

  /** The agent, for one more request; throws if there are too many. */
  #admit() {
    const { entry, host } = this.#options;
    return host.context(entry.agent, entry.caller).service;
  }

  #call() {
    return { caller: this.#options.entry.caller, tenant: "", extensions: [], dialect: DIALECT_NAME };
  }

  /** Logged once per reason: others like it follow. */
  #drop(why: "bot" | "peer" | "busy"): void {
    if (this.#logged.has(why)) return;
    this.#logged.add(why);
    const { entry, tools } = this.#options;
    tools.log.info({ channel: entry.name, why }, "A post was not answered; others like it are not logged.");
  }
}

interface TaskDetails {
  readonly theirs?: string;
  readonly fingerprint?: string;
  readonly skill?: string | undefined;
  readonly priority?: string | undefined;
  readonly hops?: number | undefined;
  readonly contextId?: string;
  readonly data?: boolean;
}

/** What people write to end a task. */
const CANCEL = /^\s*(cancel|stop|取消|停止)[\s.!。！]*$/i;

/** What people write to get the next page of a long answer. */
const MORE = /^\s*(more|next|更多|继续)[\s.!。！]*$/i;

/** The message is for the agent beyond doubt. */
function isNamed({ parsed, post }: Received, self: Participant): boolean {
  if (post.direct || post.mentions.includes(self.id)) return true;
  return parsed.kind === "message" && parsed.message.to !== undefined && isName(parsed.message.to, self);
}

/** Where mentions are only text, `name: [A2A:…` is for the participant of that name. */
function nameBeforeMarker(text: string): string | undefined {
  const before = text.slice(0, findMarker(text)?.at).replace(/[*_\s]*$/, "");
  return NAME_ALONE.exec(before.slice(before.lastIndexOf("\n") + 1).trimStart())?.[1];
}

const NAME_ALONE = /^@?([^\s<>@/:,：，]{1,64})[:,：，]$/;

function reasonOf(error: unknown): string {
  return toPublicError(error).message;
}
