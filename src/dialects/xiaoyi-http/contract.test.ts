import type { Artifact } from "../../model/artifact.ts";
import type { FrameStream, Operation, SendOutcome, StreamFrame } from "../../model/operation.ts";
import { isDataPart, type Part } from "../../model/part.ts";
import { NO_CLOCK } from "../../model/ports.ts";
import { isInterrupted, isTerminal, type TaskState } from "../../model/state.ts";
import type { AgentService, Calling, Dialect, HttpServing, ServeContext } from "../contract.ts";
import { describeDialect } from "../contract-suite.ts";
import { httpCalling } from "./call-http.ts";
import { API_KEY, entryOf, frame, NOW, page, statusFrame } from "./fixtures/serving.ts";
import { createXiaoyiHttp } from "./index.ts";

/** Which operation it was: on the wire, a send is a stream. */
const ASKED = "x-asked";

const xiaoyiHttp = createXiaoyiHttp({ clock: { ...NO_CLOCK, now: () => NOW }, entriesFor: () => [entryOf()] });

const calling: Calling = {
  ...httpCalling,
  encode(operation, target) {
    const url = `${target.url}/agent/message`;
    return httpCalling.encode(operation, { ...target, url, headers: { ...target.headers, [ASKED]: operation.kind } });
  },
};

const [http] = xiaoyiHttp.serving.http as readonly [HttpServing, HttpServing];

/** Known to the platform, and with an agent that may answer a send as a whole. */
const serving: HttpServing = {
  ...http,
  handle(exchange, context) {
    const asked = exchange.headers[ASKED];
    const headers = { ...exchange.headers, authorization: `Bearer ${API_KEY}` };
    return http.handle({ ...exchange, headers }, { ...context, service: streaming(context, asked === "send") });
  },
};

function streaming({ service }: ServeContext, asWhole: boolean): AgentService {
  const call = { caller: { owner: "", authenticated: false }, tenant: "", extensions: [], dialect: "" };
  const answer = async (operation: Operation): Promise<unknown> => {
    // Nothing waits in the session.
    if (operation.kind === "list") return page();
    if (operation.kind !== "stream") return service.dispatch(operation, call);
    if (!asWhole) return ending(await service.dispatch(operation, call));
    return framesOf(await service.dispatch({ ...operation, kind: "send" }, call));
  };
  return { ...service, dispatch: (operation) => answer(operation) as Promise<never> };
}

/** A stream that ends before its task does is an error here. */
async function* ending(frames: FrameStream): AsyncGenerator<readonly StreamFrame[], void, undefined> {
  yield* frames;
  yield [statusFrame("TASK_STATE_COMPLETED")];
}

async function* framesOf(outcome: SendOutcome): AsyncGenerator<readonly StreamFrame[], void, undefined> {
  yield [frame(outcome)];
  if ("task" in outcome) yield [statusFrame("TASK_STATE_COMPLETED")];
}

const dialect: Dialect = { ...xiaoyiHttp, serving: { http: [serving] }, calling: [calling] };

/** What a stream comes to: its artifacts and where it ended. */
function ofStream(frames: readonly StreamFrame[]): unknown {
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

describeDialect(dialect, {
  exact: false,
  answersByTask: true,
  ofStream,
  errors: {
    PUSH_NOTIFICATION_NOT_SUPPORTED: "UNSUPPORTED_OPERATION",
    CONTENT_TYPE_NOT_SUPPORTED: "INVALID_PARAMS",
    INVALID_AGENT_RESPONSE: "INTERNAL_ERROR",
    EXTENDED_AGENT_CARD_NOT_CONFIGURED: "UNSUPPORTED_OPERATION",
    EXTENSION_SUPPORT_REQUIRED: "UNSUPPORTED_OPERATION",
    VERSION_NOT_SUPPORTED: "INVALID_REQUEST",
    IDEMPOTENCY_CONFLICT: "INVALID_PARAMS",
    LOSS_REFUSED: "INVALID_PARAMS",
  },
});
