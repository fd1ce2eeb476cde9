import { ChildTask, canBeQueried } from "../../../core/agents/child-task.ts";
import {
  type AgentTarget,
  type CallableAgent,
  type ChosenAgent,
  contextIdFor,
} from "../../../core/agents/directory.ts";
import { ProtocolError } from "../../../core/model/errors.ts";
import { limitHops } from "../../../core/model/extensions.ts";
import type { Message, Part } from "../../../core/model/message.ts";
import type { FrameStream, SendInput } from "../../../core/model/operation.ts";
import type { RunContext } from "./context.ts";

/** Stored with the tasks of agents of this process. */
export const DIALECT = "workflow";

/** Precedes the keys of an attempt in the memory of its run. */
export function childPrefix(path: string, attempt: number): string {
  return `child:${path}#${attempt}:`;
}

/** Key in the memory of a run: the agent that a registry was asked for. */
export const chosenKey = (path: string, attempt: number): string => `${childPrefix(path, attempt)}chosen`;

/**
 * The agent of an attempt. One from a registry is remembered before anything is sent to it: the registry may return
 * another one the next time, which would not know the task. A further attempt prefers one that was not tried yet.
 */
export async function chooseAgent(
  { directory, isResumed, memory, turn }: RunContext,
  { number, path, target }: Pick<ChildMessage, "number" | "path"> & { readonly target: AgentTarget },
): Promise<CallableAgent> {
  if (!("skill" in target)) return directory.resolve(target, turn);
  const read = (attempt: number) => memory.get<ChosenAgent>(chosenKey(path, attempt));
  const known = isResumed ? await read(number) : undefined;
  if (known !== undefined) return directory.resolve({ chosen: known }, turn);
  const earlier = await Promise.all(Array.from({ length: number - 1 }, (_, at) => read(at + 1)));
  const avoid = earlier.filter((tried) => tried !== undefined);
  const agent = await directory.resolve(target, turn, { avoid });
  if (agent.chosen !== undefined) await memory.set(chosenKey(path, number), agent.chosen);
  return agent;
}

/** The message of an attempt at a step. */
export interface ChildMessage {
  readonly path: string;
  /** Of the attempt, from 1. */
  readonly number: number;
  /** Of the message, and of the task where the agent lets it be chosen: the same after a crash. */
  readonly id: string;
  readonly parts: readonly Part[];
  /** Tasks that the message refers to. */
  readonly references: readonly string[];
}

interface OpenOptions {
  readonly context: RunContext;
  readonly attempt: ChildMessage;
  readonly agent: CallableAgent;
  readonly signal: AbortSignal;
  /** When the attempt is over in any case, in milliseconds since the epoch. */
  readonly deadline: number | undefined;
  /** Called before anything is sent. */
  readonly onCreate: (child: ChildTask) => void;
}

/**
 * Sends the message of a step, or finds the task that it was sent to before. Undefined if it may have been sent before,
 * and the agent can neither be asked for the task nor would recognise the message.
 */
export async function openChild(options: OpenOptions): Promise<FrameStream | undefined> {
  const { agent, attempt, context, signal } = options;
  const { answers, isResumed, turn } = context;
  const child = createChild(options);
  const sent = isResumed ? await child.sent() : undefined;
  if (answers === attempt.path && sent?.message !== turn.message.messageId) {
    const waiting = await child.waiting();
    if (waiting !== undefined) return sendAnswer(options, child, waiting);
  }
  const known = sent?.task ?? (isResumed && agent.isLocal ? attempt.id : undefined);
  if (known !== undefined && canBeQueried(agent)) {
    try {
      return await child.attach(known, undefined, signal);
    } catch (error) {
      // A task with a chosen id may not have been sent yet.
      if (sent?.task !== undefined || !ProtocolError.is(error) || error.code !== "TASK_NOT_FOUND") throw error;
    }
  }
  if (sent !== undefined && sent.task === undefined && agent.recognizesRepeats !== true) return undefined;
  return createChild(options).send(firstMessage(options), signal, attempt.id);
}

function createChild(options: OpenOptions): ChildTask {
  const { agent, attempt, context, deadline, onCreate } = options;
  const { caller, hops } = context.turn;
  const child = new ChildTask(agent, {
    turn: { caller, hops: limitHops(hops, deadline), memory: context.memory },
    prefix: childPrefix(attempt.path, attempt.number),
    dialect: DIALECT,
    givenId: agent.isLocal ? attempt.id : undefined,
  });
  onCreate(child);
  return child;
}

function firstMessage(options: OpenOptions): SendInput {
  const { agent, attempt, context } = options;
  const { id } = attempt;
  const message: Message = {
    messageId: id,
    contextId: contextIdFor(agent, context.turn),
    role: "ROLE_USER",
    parts: attempt.parts.length === 0 ? [{ text: "" }] : attempt.parts,
    referenceTaskIds: [context.turn.task.id, ...attempt.references],
  };
  return { message, chosenId: id };
}

/** Sends the message of the turn to the task that asked. */
async function sendAnswer(options: OpenOptions, child: ChildTask, taskId: string): Promise<FrameStream> {
  const { agent, attempt, context, signal } = options;
  const { messageId, metadata, parts, role } = context.turn.message;
  const message: Message = {
    messageId,
    taskId,
    contextId: contextIdFor(agent, context.turn),
    role,
    parts,
    metadata,
  };
  try {
    return await child.send({ message }, signal, `${attempt.id}/${messageId}`);
  } catch (error) {
    // The agent did not wait for the answer: what became of its task says more than its refusal.
    if (!ProtocolError.is(error) || error.code !== "UNSUPPORTED_OPERATION" || !canBeQueried(agent)) throw error;
    return createChild(options).attach(taskId, undefined, signal);
  }
}
