/** An agent that dials the platform. Its conversations, answers and queues outlive a connection. */

import { toPublicError } from "../../../../core/dialects/shared/errors.ts";
import { sleep } from "../../../../core/model/backoff.ts";
import { ProtocolError } from "../../../../core/model/errors.ts";
import type { Message } from "../../../../core/model/message.ts";
import type { Delivery } from "../../../../core/model/operation.ts";
import type { Closure } from "../../../../core/wire/connection.ts";
import type { JsonRpcId } from "../../../../core/wire/json-rpc.ts";
import type { Link } from "../../../../core/wire/link.ts";
import { LINK_DIALECT } from "../../codec/card.ts";
import { type ControlTarget, decodeControl, isDesktop } from "../../codec/control.ts";
import { type DecodedMessage, decodeMessageParams, tappedNotificationId } from "../../codec/decode-message.ts";
import { toFrameError } from "../../codec/errors.ts";
import { toErrorResponse, toResponse } from "../../codec/frames.ts";
import {
  type ControlFrame,
  type DropReason,
  decodePlatformFrame,
  type MessageFrame,
  toAgentResponse,
  toHeartbeat,
  toIntroduction,
} from "../../codec/link-frames.ts";
import { toTapAnswerFrames } from "../../codec/render/notification.ts";
import { AgentTasks } from "../agent-tasks.ts";
import { downloadFiles } from "../ports.ts";
import { cancelTask, clearContext } from "./controls.ts";
import { DuplicateFilter, FrameSender, type ReceivedFrame } from "./frame-sender.ts";
import { DEFAULT_LINK_TIMES, type LinkAgentOptions, type LinkTimes } from "./options.ts";
import { decodeReplyAddress, OwedReplies, type ReplyAddress } from "./owed-replies.ts";
import { type MessageHead, Reply } from "./reply.ts";
import { type Session, Sessions } from "./sessions.ts";

/** Longer frames are dropped. */
const MAX_FRAME_LENGTH = 4 * 1024 * 1024;
/** How long a cancel or clear request is still recognised as a duplicate after its answer. */
const DUPLICATE_CONTROL_MS = 2_000;
const SETTLE_POLL_MS = 20;

const TOO_LONG = { kind: "disregarded", why: "too-long" } as const;
const METHOD_NOT_FOUND = new ProtocolError("METHOD_NOT_FOUND", "Method not found.");

export class LinkAgent {
  readonly #options: LinkAgentOptions;
  readonly #times: LinkTimes;
  readonly #tasks: AgentTasks;
  readonly #owed: OwedReplies;
  readonly #duplicates: DuplicateFilter;
  /** By server. */
  readonly #senders = new Map<string, FrameSender>();
  readonly #sessions: Sessions;
  readonly #logged = new Set<string>();
  #closed = false;

  constructor(options: LinkAgentOptions) {
    this.#options = options;
    this.#times = { ...DEFAULT_LINK_TIMES, ...options.times };
    const { caller, service } = options.context;
    const call = { caller, tenant: "", extensions: [], dialect: LINK_DIALECT };
    this.#tasks = new AgentTasks(service, call, options.clock, options.admit);
    this.#owed = new OwedReplies(options);
    this.#duplicates = new DuplicateFilter(options.clock);
    this.#sessions = new Sessions(options.cleared);
  }

  /** Serves a link until it closes. `server` identifies the remote end: one link at a time to each. */
  async serve(link: Link, server: string): Promise<Closure> {
    const { agentId, clock } = this.#options;
    const sender = new FrameSender(link, clock);
    sender.sendNow(toIntroduction(agentId));
    this.#senders.set(server, sender);
    const beatLater = (): (() => void) =>
      clock.after(this.#times.heartbeatMs, () => {
        sender.sendNow(toHeartbeat(agentId));
        stopBeating = beatLater();
      });
    let stopBeating = beatLater();
    for (const session of this.#sessions.busy) if (session.server === server) sender.wake(session);
    for await (const text of link.messages) this.#receive(text, server);
    const closure = await link.closed;
    stopBeating();
    if (this.#senders.get(server) === sender) this.#senders.delete(server);
    sender.end();
    return closure;
  }

  /** Loads what an earlier process stored. */
  load(): Promise<void> {
    return this.#sessions.load();
  }

  /** Answers a message until that is done or left: called as soon as it is stored, and again in a later process. */
  async deliver(delivery: Delivery): Promise<void> {
    const { record } = delivery;
    const address = decodeReplyAddress(record.address);
    if (address === undefined) return void (await delivery.giveUp(record.cursor, "the address cannot be read"));
    const reply = this.#owed.find(address) ?? this.#restore(record.taskId, address);
    if (reply === undefined) return this.#owed.leave(delivery, address.sessionId);
    reply.noteTask(record.taskId);
    await this.#owed.hold(reply, delivery);
  }

  /**
   * Answers a message that an earlier process received. Undefined if a newer message took its place: phones show one
   * answer per conversation.
   */
  #restore(taskId: string, address: ReplyAddress): Reply | undefined {
    if (this.#owed.isReceivedHere(address)) return undefined;
    const { servers } = this.#options;
    const server = servers.includes(address.server) ? address.server : servers[0];
    const session = this.#sessions.of(address.sessionId, server);
    if (session.reply !== undefined && session.reply.head.at >= address.at) return undefined;
    this.#abandonReply(session);
    session.tasks.set(address.taskId, taskId);
    const reply = this.#createReply(session, address);
    reply.frames.push(...address.frames.map((key) => this.#duplicates.restore(key)));
    reply.follow();
    return reply;
  }

  /** Resolves when all complete answers have been delivered, or after this time. */
  async settle(milliseconds: number): Promise<void> {
    const { clock } = this.#options;
    const end = clock.now() + milliseconds;
    const isLeaving = ({ reply }: Session): boolean => reply?.isComplete === true && !reply.isSettled;
    while (clock.now() < end && [...this.#sessions.busy].some(isLeaving)) {
      await sleep(clock, SETTLE_POLL_MS);
    }
  }

  /** The next process answers what is not delivered by now. */
  close(): void {
    this.#closed = true;
    for (const { reply } of this.#sessions.busy) reply?.abandon();
    this.#sessions.busy.clear();
  }

  #receive(text: string, server: string): void {
    if (this.#closed) return;
    const { agentId, context } = this.#options;
    const frame = text.length > MAX_FRAME_LENGTH ? TOO_LONG : decodePlatformFrame(text, agentId, context.limits);
    switch (frame.kind) {
      case "message":
        this.#message(frame, server);
        break;
      case "cancel":
      case "clear":
        this.#control(frame, text, server);
        break;
      case "unknown-method":
        this.#drop(frame.kind);
        this.#refuse(METHOD_NOT_FOUND, frame.id, frame.target, server);
        break;
      case "heartbeat":
        break;
      case "disregarded":
        this.#drop(frame.why);
        break;
    }
  }

  #message(frame: MessageFrame, server: string): void {
    const decoded = this.#decode(frame);
    if (ProtocolError.is(decoded)) {
      this.#unreadable(frame, server, decoded);
      return;
    }
    const { role, parts } = frame.params.message as { readonly role?: unknown; readonly parts?: unknown };
    const received = this.#duplicates.add([decoded.sessionId, decoded.taskId, frame.id, frame.method, role, parts]);
    if (received === undefined) return;
    for (const name of [frame.appSessionId, frame.conversationId]) {
      if (name !== undefined) this.#sessions.addAlias(name, decoded.sessionId);
    }
    const session = this.#sessions.of(decoded.sessionId, server);
    session.server = server;
    const head = this.#headOf(frame, decoded.taskId);
    void this.#options.notifications?.registerDevice(decoded);
    const tapped = tappedNotificationId(decoded.events);
    const message = { ...decoded.message, contextId: session.contextId };
    if (tapped !== undefined) this.#notificationTapped(session, head, tapped, received);
    else if (decoded.isTurn) this.#userMessage(session, message, head, received);
    else this.#deviceEvent(session, message, received);
  }

  #headOf({ deviceId, id }: MessageFrame, taskId: string): MessageHead {
    return { taskId, requestId: id, desktop: isDesktop(deviceId), at: this.#options.clock.now() };
  }

  /** The conversation of a message; an app session is resolved to its conversation. */
  #sessionOf({ appSessionId, conversationId }: MessageFrame): string | undefined {
    return conversationId ?? (appSessionId === undefined ? undefined : this.#sessions.idOf(appSessionId));
  }

  #decode(frame: MessageFrame): DecodedMessage | ProtocolError {
    const { ids, limits, report } = this.#options.context;
    const sessionId = this.#sessionOf(frame);
    try {
      const { losses, value } = decodeMessageParams(frame.params, { maxItems: limits.maxParts }, ids, sessionId);
      if (losses.length > 0) report(losses);
      return value;
    } catch (error) {
      return toPublicError(error);
    }
  }

  /** A phone waits for a final frame, even for an undecodable message; a running task sends its own. */
  #unreadable(frame: MessageFrame, server: string, error: ProtocolError): void {
    this.#drop("bad-message");
    const target = decodeControl({ params: frame.params, conversationId: this.#sessionOf(frame) });
    const received = this.#duplicates.add([frame.id, frame.method, target]);
    if (received === undefined) return;
    const [sessionId] = target.sessionIds;
    const [taskId] = target.taskIds;
    if (sessionId === undefined || taskId === undefined) {
      this.#refuse(error, frame.id, target, server);
      received.expireIn(DUPLICATE_CONTROL_MS);
      return;
    }
    const session = this.#sessions.of(sessionId, server);
    if (session.reply?.head.taskId === taskId && !session.reply.ended) {
      if (!session.reply.following) session.reply.resend();
      received.expireIn(DUPLICATE_CONTROL_MS);
      return;
    }
    this.#abandonReply(session);
    session.server = server;
    const reply = this.#createReply(session, this.#headOf(frame, taskId));
    reply.frames.push(received);
    reply.refuse(error);
  }

  #userMessage(session: Session, message: Message, head: MessageHead, received: ReceivedFrame): void {
    const current = session.reply?.ended === false ? session.reply : undefined;
    if (current?.head.taskId === head.taskId) {
      current.requestId = head.requestId;
      current.frames.push(received);
      this.#addTo(session, current, message);
      return;
    }
    // The answer to a question normally has the ids of the message that led to it, but this is not guaranteed.
    const answers = current?.following === false;
    if (answers) session.tasks.set(head.taskId, session.taskOf(current.head.taskId));
    else this.#abandonReply(session);
    const reply = this.#createReply(session, head);
    reply.frames.push(received);
    this.#open(session, reply, message, answers);
  }

  /** Phones show the newest task only: the end of any other is sent as a notification. */
  #abandonReply(session: Session): void {
    const { reply } = session;
    if (reply === undefined) return;
    this.#owed.delete(session, reply, reply.isSent);
    reply.abandon();
    session.reply = undefined;
  }

  /** The stored answer is sent, without calling the agent. */
  #notificationTapped(
    session: Session,
    { requestId, taskId }: MessageHead,
    pushDataId: string,
    received: ReceivedFrame,
  ): void {
    const scope = { taskId, artifactId: this.#options.artifactId };
    if (session.reply?.isSettled !== true) this.#abandonReply(session);
    const answer = this.#options.notifications?.readAnswer(pushDataId) ?? Promise.resolve(undefined);
    void answer.then((text) => {
      for (const { error, result } of toTapAnswerFrames(scope, text, this.#options.language)) {
        this.#sendIfAddressed(session, taskId, toResponse(requestId, result, error));
      }
      received.expireIn(DUPLICATE_CONTROL_MS);
    });
  }

  /** Device events go to the task that requested them; without one they are dropped. */
  #deviceEvent(session: Session, message: Message, received: ReceivedFrame): void {
    const { reply } = session;
    if (reply === undefined || reply.ended) {
      received.expireIn(DUPLICATE_CONTROL_MS);
      this.#drop("event");
    } else {
      reply.frames.push(received);
      this.#addTo(session, reply, message);
    }
  }

  /** A running task gets another message; a task that waits for input continues with it. */
  #addTo(session: Session, reply: Reply, message: Message): void {
    if (!reply.following) {
      this.#open(session, reply, message, true);
      return;
    }
    reply.expectsInput = true;
    void reply.started
      .then(() => this.#downloadFiles(message))
      .then((readable) =>
        this.#tasks.add(readable, session.taskOf(reply.head.taskId), this.#owed.replyTo(session, reply)),
      )
      .catch((error: unknown) => {
        reply.expectsInput = false;
        this.#options.log.warn({ err: error }, "A message could not be added to its task.");
      });
  }

  #open(session: Session, reply: Reply, message: Message, continues: boolean): void {
    this.#sessions.busy.add(session);
    const open = async () => {
      const taken = await this.#downloadFiles(message);
      return (await this.#tasks.open(taken, session.taskOf(reply.head.taskId), this.#owed.replyTo(session, reply)))
        .frames;
    };
    reply.follow(open, continues);
  }

  #downloadFiles(message: Message): Promise<Message> {
    return downloadFiles(message, this.#options.language, this.#options.intake);
  }

  #createReply(session: Session, head: MessageHead): Reply {
    const { taskId } = head;
    // The user has seen the question that this message answers.
    if (session.reply !== undefined) this.#owed.delete(session, session.reply, true);
    session.reply?.abandon();
    const reply: Reply = new Reply(head, {
      ...this.#options,
      sessionId: session.id,
      times: this.#times,
      report: this.#options.context.report,
      reopen: (moreComes) => this.#tasks.follow(session.taskOf(taskId), moreComes),
      onTask: (id) => session.tasks.set(taskId, id),
      onReady: () => this.#senders.get(session.server)?.wake(session),
      onUndelivered: () => void this.#owed.notifyLater(session, reply),
      onSettled: () => {
        if (reply.ended) this.#owed.delete(session, reply, true);
        else this.#owed.delivered(reply);
        session.settle(reply);
      },
    });
    session.reply = reply;
    this.#owed.add(session, reply);
    this.#sessions.busy.add(session);
    return reply;
  }

  #control(frame: ControlFrame, text: string, server: string): void {
    const { id, kind, target } = frame;
    // Without an id, only the content distinguishes requests.
    const received = this.#duplicates.add(id === null ? [kind, text] : [kind, id, target]);
    if (received === undefined) return;
    const session = this.#sessions.find(target.sessionIds);
    // Answered on the server it came from, which may not be that of the conversation.
    const place =
      session?.server === server
        ? session
        : this.#sessions.createTransient(session?.id ?? target.sessionIds[0] ?? "", server);
    const { context } = this.#options;
    const tools = { tasks: this.#tasks, sessions: this.#sessions, newContext: context.ids.context };
    const handle = kind === "cancel" ? cancelTask : clearContext;
    const answer = ({ result, taskId }: Awaited<ReturnType<typeof handle>>): void => {
      const [firstTask] = target.taskIds;
      this.#sendIfAddressed(place, taskId ?? firstTask ?? place.id, toResponse(id, result));
      received.expireIn(DUPLICATE_CONTROL_MS);
    };
    handle(frame, session, tools).then(answer, (error: unknown) => {
      this.#refuse(toPublicError(error), id, target, server);
      received.expireIn(DUPLICATE_CONTROL_MS);
    });
  }

  #refuse(error: ProtocolError, id: JsonRpcId, target: ControlTarget, server: string): void {
    const place = this.#sessions.createTransient(target.sessionIds[0] ?? "", server);
    // A request without a session can be answered by its id; without either, there is no recipient.
    if (place.id === "" && id === null) return;
    this.#send(place, target.taskIds[0] ?? place.id, toErrorResponse(id, toFrameError(error)));
  }

  /** Without a session, there is no recipient. */
  #sendIfAddressed(session: Session, taskId: string, detail: string): void {
    if (session.id !== "") this.#send(session, taskId, detail);
  }

  #send(session: Session, taskId: string, detail: string): void {
    if (this.#closed) return;
    session.enqueue(toAgentResponse({ agentId: this.#options.agentId, sessionId: session.id, taskId }, detail));
    this.#sessions.busy.add(session);
    this.#senders.get(session.server)?.wake(session);
  }

  /** Logged once per reason: a server that sends one malformed frame sends many. */
  #drop(why: DropReason | "too-long" | "bad-message" | "unknown-method" | "event"): void {
    if (this.#logged.has(why)) return;
    this.#logged.add(why);
    const { agentId, log } = this.#options;
    log.warn({ agentId, why }, "A frame of Xiaoyi was not understood or not for us; others like it are not logged.");
  }
}
