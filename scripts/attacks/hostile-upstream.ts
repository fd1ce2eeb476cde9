import { createServer, type ServerResponse } from "node:http";
import type { Attack, Target } from "./kit/attack.ts";
import { deadline, hold } from "./kit/sockets.ts";

const LONG = "x".repeat(1_024 * 1_024);
const NESTED = Array.from({ length: 3_000 }).reduce<object>((inner) => [inner], []);
const TASKS = 2;
const SLOW_CHECKS = 20;
/** What of a task under way is kept, and what is made of it on its way: a quarter of the heap, twice. */
const MAX_GROWTH_MIB = 2_048;

interface Stream {
  readonly answer: ServerResponse;
  readonly place: object;
  /** False: it should wait. */
  send(result: object): boolean;
}

type Update = (place: object, index: number) => object;

const FLOODS: Readonly<Record<string, Update>> = {
  metadata: (place, index) => ({
    artifactUpdate: { ...place, artifact: { artifactId: `${index}`, parts: [{ text: "" }], metadata: { LONG } } },
  }),
  names: (place, index) => ({
    artifactUpdate: { ...place, artifact: { artifactId: `${index}`, name: LONG, parts: [{ text: "" }] } },
  }),
  statuses: (place, index) => ({
    statusUpdate: {
      ...place,
      status: {
        state: "TASK_STATE_WORKING",
        message: { messageId: `${index}`, role: "ROLE_AGENT", parts: [{ text: "x" }] },
      },
    },
  }),
  artifacts: (place, index) => ({
    artifactUpdate: { ...place, artifact: { artifactId: `${index}`, parts: [{ text: "x" }] } },
  }),
  // Alternating, so that no two pieces can be joined.
  pieces: (place, index) => ({
    artifactUpdate: { ...place, append: index > 1, artifact: { artifactId: `${index % 2}`, parts: [{ text: "x" }] } },
  }),
  replacements: (place) => ({
    artifactUpdate: { ...place, artifact: { artifactId: "one", parts: [{ text: LONG }] } },
  }),
  ids: (place, index) => ({
    artifactUpdate: { ...place, artifact: { artifactId: `${LONG}${index}`, parts: [{ text: "x" }] } },
  }),
  nesting: (place, index) => ({
    artifactUpdate: { ...place, artifact: { artifactId: `${index}`, parts: [{ text: "x" }], metadata: { NESTED } } },
  }),
  keys: (place, index) => ({
    artifactUpdate: { ...place, artifact: { artifactId: `${index}`, parts: [{ data: keys(index) }] } },
  }),
};

/** What an SSE stream may contain besides events. */
const NOISE: Readonly<Record<string, string>> = {
  comments: ": x\n".repeat(10_000),
  "long-comments": `: ${LONG}`,
  blank: "\n".repeat(50_000),
  "empty-data": "data:\n".repeat(10_000),
  "empty-events": "event: x\ndata: \n\n".repeat(5_000),
};

/** Names that no other object has, of which V8 keeps a shape each. */
function keys(index: number): object {
  return Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`k${index}-${at}`, at]));
}

type Write = (stream: Stream, index: number) => boolean;

const WRITES: Readonly<Record<string, Write>> = {
  ...Object.fromEntries(
    Object.entries(FLOODS).map(([kind, update]): [string, Write] => [
      kind,
      ({ place, send }, index) => send(update(place, index)),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(NOISE).map(([kind, text]): [string, Write] => [kind, ({ answer }) => answer.write(text)]),
  ),
};

/** A remote agent that writes without end what is not content. */
export const upstreamFloods: readonly Attack[] = Object.entries(WRITES).map(([kind, writeOne]) => ({
  name: `upstream-${kind}`,
  what: `a remote agent answers ${TASKS} messages with ${kind} without end`,
  maxGrowthMib: MAX_GROWTH_MIB,
  config: ({ ownPort }) => ({
    agents: { echo: { use: "echo" }, hostile: { remote: `http://127.0.0.1:${ownPort}` } },
  }),
  async run(target) {
    const isOver = deadline(target);
    await serveUpstream(target, (stream) => {
      const { answer } = stream;
      let index = 0;
      const write = () => {
        if (answer.destroyed || isOver()) return void answer.destroy();
        let isFree = true;
        for (let count = 0; count < 200 && isFree; count++) isFree = writeOne(stream, index++);
        if (isFree) setImmediate(write);
        else answer.once("drain", write);
      };
      write();
    });
    await Promise.all(Array.from({ length: TASKS }, () => start(target, "hostile")));
    await hold(isOver);
  },
}));

/** Data for which a regular expression of a workflow takes for ever. */
export const slowChecks: Attack = {
  name: "slow-checks",
  what: `${SLOW_CHECKS} results that an outputSchema cannot be checked for in a lifetime`,
  config: ({ ownPort }) => ({
    agents: {
      echo: { use: "echo" },
      checked: {
        workflow: {
          name: "checked",
          steps: {
            only: {
              url: `http://127.0.0.1:${ownPort}`,
              outputSchema: { type: "object", properties: { text: { type: "string", pattern: "^(a+)+$" } } },
            },
          },
        },
      },
    },
  }),
  async run(target) {
    const isOver = deadline(target);
    await serveUpstream(target, ({ answer, place, send }) => {
      const artifact = { artifactId: "a", parts: [{ data: { text: `${"a".repeat(40)}!` } }] };
      send({ artifactUpdate: { ...place, artifact } });
      send({ statusUpdate: { ...place, status: { state: "TASK_STATE_COMPLETED" } } });
      answer.end();
    });
    await Promise.all(Array.from({ length: SLOW_CHECKS }, () => start(target, "checked")));
    await hold(isOver);
  },
};

async function start({ httpPort, key }: Target, agent: string): Promise<void> {
  const message = { messageId: `${Math.random()}`, role: "ROLE_USER", parts: [{ text: "go" }] };
  await fetch(`http://127.0.0.1:${httpPort}/agents/${agent}/rest/message:send`, {
    method: "POST",
    headers: { "content-type": "application/json", "a2a-version": "1.0", "x-api-key": key },
    body: JSON.stringify({ message, configuration: { returnImmediately: true } }),
  }).then((answer) => answer.text());
}

/** An agent of A2A 1.0 that answers every stream by `reply`, after its task. */
async function serveUpstream(target: Target, reply: (stream: Stream) => void): Promise<void> {
  const url = `http://127.0.0.1:${target.ownPort}/`;
  const card = {
    ...{ name: "hostile", description: "Hostile.", version: "1", skills: [], capabilities: { streaming: true } },
    supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    ...{ defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"] },
  };
  let tasks = 0;
  const server = createServer(async (request, answer) => {
    let body = "";
    for await (const piece of request) body += piece;
    if (request.method === "GET") {
      answer.setHeader("content-type", "application/json").end(JSON.stringify(card));
      return;
    }
    const place = { taskId: `task-${tasks++}`, contextId: "context" };
    answer.setHeader("content-type", "text/event-stream").on("error", () => {});
    const send = (result: object) => {
      const text = `data: ${JSON.stringify({ jsonrpc: "2.0", id: JSON.parse(body).id, result })}\n\n`;
      target.sent(text.length);
      return answer.write(text);
    };
    const { taskId: id, contextId } = place;
    send({ task: { id, contextId, status: { state: "TASK_STATE_WORKING" } } });
    reply({ answer, place, send });
  });
  await new Promise<void>((resolve) => server.listen(target.ownPort, "127.0.0.1", resolve));
}
