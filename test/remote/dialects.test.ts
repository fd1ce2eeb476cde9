import { describe, expect, test } from "vitest";
import { HTTP_BINDINGS } from "../support/bindings.ts";
import { startGateway, startUpstream, UPSTREAMS } from "../support/gateway.ts";
import { type NumberedEvent, statesOf, userMessage, WireClient } from "../support/wire-client.ts";

const [JSON_RPC] = HTTP_BINDINGS;

const upstream = await startUpstream();
const { server, stage } = upstream;
const gateway = await startGateway(
  Object.fromEntries(UPSTREAMS.map(({ remote }, at) => [`remote-${at}`, remote(server)])),
);

const textOfChunks = (events: readonly NumberedEvent[]) =>
  events
    .flatMap(({ event }) => event.artifactUpdate?.artifact.parts ?? [])
    .map(({ text }) => text)
    .join("");

describe.each(UPSTREAMS.map(({ name }, at) => ({ name, agent: `remote-${at}` })))(
  "an upstream of $name",
  ({ agent, name }) => {
    const client = () => new WireClient(JSON_RPC, `${gateway.url}/agents/${agent}`);
    /** Gates are shared by all agents of the stage. */
    const gate = (text: string) => `${text}-${agent}`;

    test("answers with artifacts and a final state", async () => {
      const task = await client().task("artifact Hello");
      expect(task.status.state).toBe("TASK_STATE_COMPLETED");
      const text = (task.artifacts ?? []).flatMap(({ parts }) => parts.map(({ text }) => text)).join("");
      expect(text).toContain("Hello");
    });

    test("streams while it works", async () => {
      const stream = await client().stream(`artifact first; hold ${gate("stream")}; chunks 3`);
      await stage.reached(gate("stream"));
      const early: NumberedEvent[] = [];
      while (!textOfChunks(early).includes("first")) early.push((await stream.next())!);
      stage.open(gate("stream"));
      const rest = await stream.rest();
      expect(textOfChunks(rest).replaceAll("\n", "")).toContain("0,1,2,");
      expect(statesOf([...early, ...rest]).at(-1)).toBe("COMPLETED");
      expect([...early, ...rest].map(({ number }) => number)).toEqual(early.concat(rest).map((_, at) => at + 1));
    });

    test("asks, and gets the answer for the same task", async () => {
      const asked = await client().task("input Which one?");
      expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
      expect(asked.status.message?.parts[0]?.text).toBe("Which one?");
      const before = stage.started.length;
      const done = await client().task(userMessage("artifact This one", { taskId: asked.id }));
      expect(done.id).toBe(asked.id);
      expect(done.status.state).toBe("TASK_STATE_COMPLETED");
      expect(stage.started.slice(before)).toEqual(["artifact This one"]);
    });

    test("is cancelled", async () => {
      const script = `artifact Begun; hold ${gate("cancel")}`;
      const { id } = await client().start(script);
      await stage.reached(gate("cancel"));
      const task = await client().cancel(id);
      expect(task.status.state).toBe("TASK_STATE_CANCELED");
      await expect.poll(() => stage.stopped).toContain(script);
    });

    test("fails with its reason", async () => {
      const { status } = await client().task("fail Out of paper");
      expect(status.state).toBe("TASK_STATE_FAILED");
      if (name !== "xiaoyi-http") expect(status.message?.parts[0]?.text).toBe("Out of paper");
    });
  },
);
