import { ChildTask, canBeQueried } from "../../core/agents/child-task.ts";
import { Collector } from "../../core/agents/collector.ts";
import { type AgentDirectory, type CallableAgent, contextIdFor } from "../../core/agents/directory.ts";
import type { Turn } from "../../core/engine/agent.ts";
import { isRunLost } from "../../core/model/abort.ts";
import { withAnswer } from "../../core/model/answer.ts";
import { ProtocolError } from "../../core/model/errors.ts";
import type { Message } from "../../core/model/message.ts";
import type { FrameStream } from "../../core/model/operation.ts";
import { statusText } from "../../core/model/status-texts.ts";
import { isTerminal, type Task } from "../../core/model/task.ts";
import type { AgentAnswer, AgentCall } from "./agent-tools.ts";

/** Calls that models make for one request of a person, in all agents that it leads to: each may call others in turn. */
const MAX_CALLS = 256;
/** Requests that are remembered. */
const MAX_REQUESTS = 10_000;

const callsByRequest = new Map<string, number>();

/** Counts a call that a model asks for; false if the request that led to it has had too many. */
export function takeCall({ hops, task }: Pick<Turn, "hops" | "task">): boolean {
  const root = hops.root ?? task.id;
  const made = callsByRequest.get(root) ?? 0;
  if (made >= MAX_CALLS) return false;
  // At the end again: the oldest are forgotten first.
  callsByRequest.delete(root);
  callsByRequest.set(root, made + 1);
  const [oldest] = callsByRequest.keys();
  if (callsByRequest.size > MAX_REQUESTS && oldest !== undefined) callsByRequest.delete(oldest);
  return true;
}

/** Sends a message to an agent as a task of its own and waits until that ends or asks for input. */
export async function callAgent(call: AgentCall, turn: Turn, directory: AgentDirectory): Promise<AgentAnswer> {
  const { signal } = turn;
  const agent = await directory.resolve({ agent: call.agent }, turn);
  const child = new ChildTask(agent, { turn, prefix: `${call.key}/`, dialect: agent.dialect });
  let cancelling: Promise<void> | undefined;
  const stop = () => {
    cancelling = cancelChild(child, signal).then(() => child.leave());
  };
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    const answer = await readAnswer(child, await open(call, turn, agent, child));
    signal.throwIfAborted();
    return answer;
  } catch (error) {
    // Whatever else the agent does for a task that cannot be used is in vain.
    if (!child.isSettled) await cancelChild(child, signal);
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
    await cancelling;
    // The id may have arrived after the abort.
    if (signal.aborted) await cancelChild(child, signal);
  }
}

/** Whether or not the agent confirms it, the turn ends. */
async function cancelChild(child: ChildTask, signal: AbortSignal): Promise<void> {
  if (!isRunLost(signal)) await child.cancel().catch(() => {});
}

async function open(call: AgentCall, turn: Turn, agent: CallableAgent, child: ChildTask): Promise<FrameStream> {
  const { attempt, signal, task } = turn;
  const place = `${task.id}/${call.key}`;
  const messageId = call.isReply ? `${place}/${turn.message.messageId}` : place;
  const earlier = attempt > 1 ? await child.sent() : undefined;
  if (earlier?.message === messageId && earlier.task !== undefined && canBeQueried(agent)) {
    return child.attach(earlier.task, undefined, signal);
  }
  const waiting = call.isReply ? await child.waiting() : undefined;
  const message: Message = {
    messageId,
    role: "ROLE_USER",
    contextId: contextIdFor(agent, turn),
    parts: call.parts,
    referenceTaskIds: agent.isLocal ? [task.id] : undefined,
    taskId: waiting,
  };
  return child.send({ message }, signal, messageId);
}

/** Rejects for an answer that no task can have, or that is too long. */
async function readAnswer(child: ChildTask, frames: FrameStream): Promise<AgentAnswer> {
  const collector = new Collector();
  const reading = child.read(frames, (event) => {
    collector.apply(event);
    return [event];
  });
  for (;;) {
    const step = await reading.next();
    if (step.done !== true) {
      // What follows the end is not of interest.
      if (child.state !== undefined && isTerminal(child.state)) await child.leave();
      continue;
    }
    if (step.value !== undefined) return { state: "TASK_STATE_COMPLETED", parts: step.value.parts };
    const { task } = collector;
    if (task !== undefined && child.isSettled) return toAnswer(task);
    throw new ProtocolError("INVALID_AGENT_RESPONSE", statusText("answerBrokeOff"));
  }
}

function toAnswer(task: Task): AgentAnswer {
  const { artifacts = [], status } = withAnswer(task);
  const message = status.message?.parts ?? [];
  const made = artifacts.flatMap(({ parts }) => parts);
  const isResult = status.state === "TASK_STATE_COMPLETED" && made.length > 0;
  return { state: status.state, parts: isResult ? made : message };
}
