/**
 * An agent that has dialled the platform. Conversations, answers under way and what is still to be sent belong to it and
 * not to a connection: whatever happens to one, the next goes on where it ended.
 */

import { ProtocolError } from "../../model/errors.ts";
import type { Message } from "../../model/message.ts";
import type { JsonRpcId } from "../../wire/json-rpc.ts";
import type { Link, LinkClosure } from "../../wire/link.ts";
import type { LinkServer } from "../contract.ts";
import { toPublicError } from "../shared/errors.ts";
import { type ControlWords, isDesktop, readControl } from "../xiaoyi/control.ts";
import { type HeardMessage, readMessageParams, tappedPushId } from "../xiaoyi/decode.ts";
import { toFrameError } from "../xiaoyi/errors.ts";
import { readable } from "../xiaoyi/file-intake.ts";
import { NO_NOTICES, type Notices } from "../xiaoyi/notices.ts";
import { tappedFrames } from "../xiaoyi/notification.ts";
import { Uploads } from "../xiaoyi/uploads.ts";
import { toRefusal, toResponse } from "../xiaoyi/wire.ts";
import { Controls } from "./controls.ts";
import { type Disregard, type HeardControl, type HeardRequest, readFrame } from "./decode.ts";
import { toAnswer, toHeartbeat, toIntroduction } from "./encode.ts";
import { leftOver } from "./left-over.ts";
import { Line } from "./line.ts";
import type { LinkAgentOptions } from "./options.ts";
import { marked, type Recalled } from "./recall.ts";
import { Reply } from "./reply.ts";
import { type SeenFrame, SeenFrames } from "./seen-frames.ts";
import type { Session } from "./session.ts";
import { Sessions } from "./sessions.ts";
import { Tasks } from "./tasks.ts";
import { DEFAULT_LINK_TIMES, type LinkTimes } from "./times.ts";

/** Longer frames are not read. */
const LONGEST_FRAME = 4 * 1024 * 1024;
/** How long after it was answered a request to cancel or clear is still recognised. */
const SAME_CONTROL_MS = 2_000;

const LOOK_AGAIN_MS = 20;

const TOO_LONG = { kind: "disregarded", why: "too-long" } as const;
const NO_SUCH_METHOD = new ProtocolError("METHOD_NOT_FOUND", "There is no such method.");

type LinkLine = Line<Reply>;

export class LinkAgent implements LinkServer {
  readonly #options: LinkAgentOptions;
  readonly #times: LinkTimes;
  readonly #tasks: Tasks;
  readonly #uploads: Uploads | undefined;
  readonly #notices: Notices;
  readonly #seen: SeenFrames;
  readonly #lines = new Map<string, LinkLine>();
  readonly #sessions: Sessions;
  readonly #controls: Controls;
  readonly #logged = new Set<string>();
  #closed = false;

  constructor(options: LinkAgentOptions) {
    this.#options = options;
    this.#times = { ...DEFAULT_LINK_TIMES, ...options.times };
    this.#tasks = new Tasks(options.context, options.clock);
    this.#uploads = options.upload === undefined ? undefined : new Uploads(options.upload, options.log);
    this.#notices = options.notices ?? NO_NOTICES;
    this.#seen = new SeenFrames(options.clock);
    this.#sessions = new Sessions(options.cleared);
    this.#controls = new Controls(this.#tasks, this.#sessions, options.context.ids);
  }

  async serve(link: Link, server: string): Promise<LinkClosure> {
    const { agentId, clock } = this.#options;
    const line: LinkLine = new Line(link, clock);
    line.say(toIntroduction(agentId));
    this.#lines.set(server, line);
    const beatLater = (): (() => void) =>
      clock.after(this.#times.heartbeatMs, () => {
        line.say(toHeartbeat(agentId));
        stopBeating = beatLater();
      });
    let stopBeating = beatLater();
    for (const session of this.#sessions.busy) if (session.server === server) line.wake(session);
    for await (const text of link.messages) this.#hear(text, server);
    const closure = await link.closed;
    stopBeating();
    if (this.#lines.get(server) === line) this.#lines.delete(server);
    // However it closed: a platform that was asked and did not say so may have read everything, or nothing.
    for (const reply of line.end()) reply.restate();
    return closure;
  }

  async resume(since: number, servers: readonly [string, ...string[]]): Promise<void> {
    const { agentId, unanswered } = this.#options;
    await this.#sessions.load();
    for (const { id, recalled } of await leftOver({ agentId, since, unanswered }, this.#tasks, this.#notices)) {
      const server = servers.includes(recalled.server) ? recalled.server : servers[0];
      const session = this.#sessions.of(recalled.sessionId, server);
      session.tasks.set(recalled.taskId, id);
      const reply = this.#createReply(session, recalled);
      reply.seen.push(...recalled.frames.map((key) => this.#seen.recall(key)));
      reply.follow();
    }
  }

  async drain(milliseconds: number): Promise<void> {
    const { clock } = this.#options;
    const end = clock.now() + milliseconds;
    const isLeaving = ({ reply }: Session): boolean => reply?.withheld === true;
    while (clock.now() < end && [...this.#sessions.busy].some(isLeaving)) {
      await new Promise<void>((resolve) => {
        clock.after(LOOK_AGAIN_MS, resolve);
      });
    }
  }

  close(): void {
    this.#closed = true;
    for (const session of this.#sessions.busy) {
      // The next process takes up what is under way, but not what has ended or waits for the user.
      const { reply } = session;
      if (reply?.withheld === true) this.#leave(session);
      else if (reply?.complete === true) void this.#options.unanswered?.delete(session.taskOf(reply.platformId));
      reply?.leave();
    }
    this.#sessions.busy.clear();
  }

  #hear(text: string, server: string): void {
    if (this.#closed) return;
    const { agentId, context } = this.#options;
    const frame = text.length > LONGEST_FRAME ? TOO_LONG : readFrame(text, agentId, context.limits);
    switch (frame.kind) {
      case "message":
        this.#message(frame, server);
        break;
      case "cancel":
      case "clear":
        this.#control(frame, text, server);
        break;
      case "unknown-method":
        this.#disregard(frame.kind);
        this.#refuse(NO_SUCH_METHOD, frame.id, frame.words, server);
        break;
      case "heartbeat":
        break;
      case "disregarded":
        this.#disregard(frame.why);
        break;
    }
  }

  #message(frame: HeardRequest, server: string): void {
    const heard = this.#read(frame);
    if (ProtocolError.is(heard)) {
      this.#unreadable(frame, server, heard);
      return;
    }
    const { role, parts } = frame.params.message as { readonly role?: unknown; readonly parts?: unknown };
    const seen = this.#seen.note([heard.sessionId, heard.taskId, frame.id, frame.method, role, parts]);
    if (seen === undefined) return;
    for (const name of [frame.appSessionId, frame.conversationId]) {
      if (name !== undefined) this.#sessions.learn(name, heard.sessionId);
    }
    const session = this.#sessions.of(heard.sessionId, server);
    session.server = server;
    const recalled = this.#toRecall(frame, heard, server, seen);
    void this.#notices.heard(heard);
    const tapped = tappedPushId(heard.events);
    const message = marked({ ...heard.message, contextId: session.contextId }, recalled);
    if (tapped !== undefined) this.#tapped(session, recalled, tapped, seen);
    else if (heard.isTurn) this.#turn(session, message, recalled, seen);
    else this.#event(session, message, seen);
  }

  #toRecall(frame: HeardRequest, ids: TaskIds, server: string, { key }: SeenFrame): Recalled {
    return {
      agentId: this.#options.agentId,
      sessionId: ids.sessionId,
      taskId: ids.taskId,
      requestId: frame.id,
      server,
      desktop: isDesktop(frame.deviceId),
      at: this.#options.clock.now(),
      frames: [key],
    };
  }

  /** The conversation that a message belongs to, where it does not say so itself. */
  #sessionOf({ appSessionId, conversationId }: HeardRequest): string | undefined {
    return conversationId ?? (appSessionId === undefined ? undefined : this.#sessions.idOf(appSessionId));
  }

  #read(frame: HeardRequest): HeardMessage | ProtocolError {
    const { ids, limits, report } = this.#options.context;
    const sessionId = this.#sessionOf(frame);
    try {
      const { losses, value } = readMessageParams(frame.params, { maxItems: limits.maxParts }, ids, { sessionId });
      if (losses.length > 0) report(losses);
      return value;
    } catch (error) {
      return toPublicError(error);
    }
  }

  /** A phone waits for an end, also of what could not be read; what is under way has one of its own. */
  #unreadable(frame: HeardRequest, server: string, error: ProtocolError): void {
    this.#disregard("bad-message");
    const words = readControl({ params: frame.params, conversationId: this.#sessionOf(frame) });
    const seen = this.#seen.note([frame.id, frame.method, words]);
    if (seen === undefined) return;
    const [sessionId] = words.sessionIds;
    const [taskId] = words.taskIds;
    if (sessionId === undefined || taskId === undefined) {
      this.#refuse(error, frame.id, words, server);
      seen.answered(SAME_CONTROL_MS);
      return;
    }
    const session = this.#sessions.of(sessionId, server);
    if (session.reply?.platformId === taskId && !session.reply.ended) {
      if (!session.reply.following) session.reply.restate();
      seen.answered(SAME_CONTROL_MS);
      return;
    }
    this.#leave(session);
    session.server = server;
    const reply = this.#createReply(session, this.#toRecall(frame, { sessionId, taskId }, server, seen));
    reply.seen.push(seen);
    reply.refuse(error);
  }

  #turn(session: Session, message: Message, recalled: Recalled, seen: SeenFrame): void {
    const current = session.reply?.ended === false ? session.reply : undefined;
    if (current?.platformId === recalled.taskId) {
      current.requestId = recalled.requestId;
      current.seen.push(seen);
      this.#addTo(session, current, message);
      return;
    }
    // A question is answered under the ids that led to it, but who knows.
    const answers = current?.following === false;
    if (answers) session.tasks.set(recalled.taskId, session.taskOf(current.platformId));
    else this.#leave(session);
    const reply = this.#createReply(session, recalled);
    reply.seen.push(seen);
    this.#open(session, reply, message, answers);
  }

  /** Phones listen to the newest task only: how another ends is told elsewhere. */
  #leave(session: Session): void {
    const { reply } = session;
    if (reply?.told === false) this.#left(session.taskOf(reply.platformId), session.id);
    reply?.leave();
    session.reply = undefined;
  }

  #left(taskId: string, sessionId: string): void {
    this.#notices.left(taskId, sessionId);
    void this.#options.unanswered?.delete(taskId);
  }

  /** What a notification stood for is all there is to say. */
  #tapped(session: Session, { requestId, taskId }: Recalled, pushDataId: string, seen: SeenFrame): void {
    const scope = { taskId, artifactId: this.#options.artifactId };
    if (session.reply?.resting !== true) this.#leave(session);
    void this.#notices.recall(pushDataId).then((text) => {
      for (const { error, result } of tappedFrames(scope, text, this.#options.language)) {
        this.#say(session, taskId, toResponse(requestId, result, error));
      }
      seen.answered(SAME_CONTROL_MS);
    });
  }

  /** What a device did is for the task that asked it to; without one nobody waits for it. */
  #event(session: Session, message: Message, seen: SeenFrame): void {
    const { reply } = session;
    if (reply === undefined || reply.ended) {
      seen.answered(SAME_CONTROL_MS);
      this.#disregard("event");
    } else {
      reply.seen.push(seen);
      this.#addTo(session, reply, message);
    }
  }

  /** A task under way gets another message; one that waits for its answer goes on with it. */
  #addTo(session: Session, reply: Reply, message: Message): void {
    if (!reply.following) {
      this.#open(session, reply, message, true);
      return;
    }
    reply.moreComes = true;
    void reply.started
      .then(() => this.#readable(message))
      .then((readable) => this.#tasks.add(readable, session.taskOf(reply.platformId)))
      .catch((error: unknown) => {
        reply.moreComes = false;
        this.#options.log.warn({ err: error }, "A message could not be added to its task.");
      });
  }

  #open(session: Session, reply: Reply, message: Message, continues: boolean): void {
    this.#sessions.busy.add(session);
    const open = async () => {
      const taken = await this.#readable(message);
      const id = session.taskOf(reply.platformId);
      // Before the task can end: the answer to one that ends as the process does is owed by the next.
      await this.#options.unanswered?.set(id, session.id);
      return (await this.#tasks.open(taken, id)).frames;
    };
    reply.follow(open, continues);
  }

  #readable(message: Message): Promise<Message> {
    return readable(message, this.#options.language, this.#options.intake);
  }

  #createReply(session: Session, { desktop, requestId, taskId }: Recalled): Reply {
    const { agentId, artifactId, clock, context, language, mode } = this.#options;
    session.reply?.leave();
    const reply: Reply = new Reply(requestId, {
      address: { agentId, sessionId: session.id, taskId },
      mode,
      language,
      desktop,
      clock,
      times: this.#times,
      artifactId,
      report: context.report,
      prepare: this.#uploads?.prepare,
      again: (moreComes) => this.#tasks.stored(session.taskOf(taskId), moreComes),
      onTask: (id) => {
        const wanted = session.taskOf(taskId);
        if (id !== wanted) void this.#options.unanswered?.delete(wanted);
        session.tasks.set(taskId, id);
        void this.#options.unanswered?.set(id, session.id);
      },
      onReady: () => this.#lines.get(session.server)?.wake(session),
      onAbsent: () => this.#left(session.taskOf(taskId), session.id),
      onRest: () => {
        this.#notices.seen(session.taskOf(taskId));
        void this.#options.unanswered?.delete(session.taskOf(taskId));
        session.rest(reply);
      },
    });
    session.reply = reply;
    this.#sessions.busy.add(session);
    return reply;
  }

  #control(frame: HeardControl, text: string, server: string): void {
    const { id, kind, words } = frame;
    // Without an id nothing else tells one request from the next.
    const seen = this.#seen.note(id === null ? [kind, text] : [kind, id, words]);
    if (seen === undefined) return;
    const session = this.#sessions.find(words.sessionIds);
    // Answered where it came from, which need not be where the conversation is.
    const place =
      session?.server === server ? session : this.#sessions.passing(session?.id ?? words.sessionIds[0] ?? "", server);
    void this.#controls[kind](frame, session).then(({ result, taskId }) => {
      const [firstTask] = words.taskIds;
      this.#say(place, taskId ?? firstTask ?? place.id, toResponse(id, result));
      seen.answered(SAME_CONTROL_MS);
    });
  }

  #refuse(error: ProtocolError, id: JsonRpcId, words: ControlWords, server: string): void {
    const place = this.#sessions.passing(words.sessionIds[0] ?? "", server);
    // A request that names no session is still known by its id; without either there is no one to answer.
    if (place.id === "" && id === null) return;
    this.#send(place, words.taskIds[0] ?? place.id, toRefusal(id, toFrameError(error)));
  }

  /** Nobody could be told without a session. */
  #say(session: Session, taskId: string, detail: string): void {
    if (session.id !== "") this.#send(session, taskId, detail);
  }

  #send(session: Session, taskId: string, detail: string): void {
    if (this.#closed) return;
    session.say(toAnswer({ agentId: this.#options.agentId, sessionId: session.id, taskId }, detail));
    this.#sessions.busy.add(session);
    this.#lines.get(session.server)?.wake(session);
  }

  /** Said once for each reason: whoever sends one odd frame sends many. */
  #disregard(why: Disregard | "too-long" | "bad-message" | "unknown-method" | "event"): void {
    if (this.#logged.has(why)) return;
    this.#logged.add(why);
    const { agentId, log } = this.#options;
    log.warn({ agentId, why }, "A frame of Xiaoyi was not understood or not for us; others like it are not logged.");
  }
}

type TaskIds = Pick<Recalled, "sessionId" | "taskId">;
