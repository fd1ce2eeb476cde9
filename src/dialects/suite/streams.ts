/** For dialects that know nothing but streams, and tell them by events of their own. */
import type { Artifact } from "../../model/artifact.ts";
import type { FrameStream, Operation, SendOutcome, StreamFrame } from "../../model/operation.ts";
import { isDataPart, type Part } from "../../model/part.ts";
import { isInterrupted, isTerminal, type TaskState } from "../../model/state.ts";
import type { AgentService } from "../contract.ts";
import { frameOf } from "./values.ts";

/** Asked for streams, it takes them for sends, whose outcomes may be streams as well; nothing waits and nothing runs. */
export function streamingOnly(service: AgentService): AgentService {
  const call = { caller: { owner: "", authenticated: false }, tenant: "", extensions: [], dialect: "" };
  const answer = async (operation: Operation): Promise<unknown> => {
    if (operation.kind === "list") return { tasks: [], nextPageToken: "", pageSize: 1, totalSize: 0 };
    if (operation.kind !== "stream") return service.dispatch(operation, call);
    const outcome: SendOutcome | FrameStream = await service.dispatch({ ...operation, kind: "send" }, call);
    return toItsEnd(outcome);
  };
  return { ...service, dispatch: (operation) => answer(operation) as Promise<never> };
}

/** A stream that ends before its task does is an error where nobody can ask for the task. */
async function* toItsEnd(outcome: SendOutcome | FrameStream): AsyncGenerator<readonly StreamFrame[], void, undefined> {
  if (Symbol.asyncIterator in outcome) yield* outcome;
  else yield [frameOf(outcome, 1)];
  yield [frameOf({ statusUpdate: { taskId: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" } } }, 2)];
}

/** What a stream comes to: its artifacts and where it ended. */
export function outcomeOfStream(frames: readonly StreamFrame[]): unknown {
  const artifacts = new Map<string, Part[]>();
  let state: TaskState | undefined;
  const put = ({ artifactId, parts }: Artifact, append: boolean) => {
    artifacts.set(artifactId, [...(append ? (artifacts.get(artifactId) ?? []) : []), ...parts.map(asHeard)]);
  };
  for (const { event } of frames) {
    if ("artifactUpdate" in event) put(event.artifactUpdate.artifact, event.artifactUpdate.append === true);
    if ("task" in event) for (const artifact of event.task.artifacts ?? []) put(artifact, false);
    if ("task" in event) state = event.task.status.state;
    if ("statusUpdate" in event) state = event.statusUpdate.status.state;
    if (state !== undefined && (isTerminal(state) || isInterrupted(state))) break;
  }
  return [[...artifacts], state];
}

/** `JSON.stringify` has the last word. */
function asHeard(part: Part): Part {
  return isDataPart(part) ? { data: part.data } : part;
}
