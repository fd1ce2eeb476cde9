import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LinkCaller } from "../../../src/core/dialects/contract.ts";
import { linkToolsOf, serveLink } from "../../../src/core/dialects/suite/join.ts";
import type { Loss } from "../../../src/core/model/loss.ts";
import { type Part, textOf } from "../../../src/core/model/message.ts";
import type { Link } from "../../../src/core/wire/link.ts";
import { createLinkPair } from "../../../src/core/wire/testing/link-pair.ts";
import { createStage, type Stage } from "../stage.ts";
import { chat } from "./index.ts";

let stage: Stage;
let caller: LinkCaller;
let room: Link;
let served: Promise<unknown> | undefined;
let lost: Loss[];
/** Everything that was said in the room. */
let heard: string[];

beforeEach(async () => {
  stage = await createStage();
  heard = [];
  lost = stage.losses;
  const [near, far] = createLinkPair();
  room = near;
  const send = (text: string) => {
    heard.push(text);
    return far.send(text);
  };
  served = serveLink(chat, stage.context, { ...far, send });
  const calling = chat.calling[0];
  if (calling?.carrier !== "link") throw new Error("A chat is a link.");
  caller = calling.open(linkToolsOf(lost));
  void caller.attach({
    ...near,
    send: (text) => {
      heard.push(text);
      return near.send(text);
    },
  });
});

afterEach(async () => {
  room.close();
  await served;
  await stage.close();
});

let sent = 0;
async function say(contextId: string, parts: string | Part[]): Promise<string> {
  const message = {
    messageId: `m${++sent}`,
    role: "ROLE_USER" as const,
    parts: typeof parts === "string" ? [{ text: parts }] : parts,
    contextId,
  };
  const outcome = await caller.dispatch({ kind: "send", message }, {});
  if (!("message" in outcome)) throw new Error("A chat answers with messages.");
  expect(outcome.message.contextId).toBe(contextId);
  return textOf(outcome.message.parts);
}

describe("an agent in a chat", () => {
  test("answers with whole messages, what it streamed included", async () => {
    expect(await say("red", "reply hello\nthere")).toBe("hello\nthere");
    expect(await say("red", "count")).toBe("1 2 3 4 5 ");
    expect(heard).toHaveLength(4);
  });

  test("is answered in the same conversation when it asked, without a task id in any line", async () => {
    expect(await say("red", "ask")).toBe("Which colour?");
    expect(await say("blue", "hello")).toBe("0 messages before, now hello");
    expect(await say("red", "green")).toBe("2 messages before, now green");
    expect(await say("red", "and now")).toBe("0 messages before, now and now");
    const { tasks } = await stage.store.list({
      agent: "stagehand",
      tenant: "",
      owner: "anonymous",
      limit: 10,
      history: 10,
      artifacts: false,
    });
    expect(tasks).toHaveLength(3);
    for (const { id } of tasks) expect(heard.join("\n")).not.toContain(id);
    expect(lost).toContainEqual({ kind: "bent", path: "task.status.state", reason: expect.any(String) });
  });

  test("says what it could not say", async () => {
    expect(await say("red", "mixed")).toBe("see ");
    const dropped = { kind: "dropped", reason: expect.any(String) };
    expect(lost).toEqual([
      { ...dropped, path: "task.artifacts[0].parts[1]" },
      { ...dropped, path: "task.artifacts[0].parts[2]" },
      { kind: "bent", path: "task.artifacts", reason: "said as text" },
    ]);
    lost.length = 0;
    await say("red", [{ text: "reply" }, { data: 1 }, { raw: "aGk=" }]);
    expect(lost.map(({ path }) => path)).toEqual(["message.parts[1]", "message.parts[2]"]);
  });

  test("keeps conversations apart and each in order", async () => {
    const answers = await Promise.all([
      say("a", "reply 1"),
      say("b", "reply 2"),
      say("a", "reply 3"),
      say("c", "reply 4"),
      say("b", "reply 5"),
    ]);
    expect(answers).toEqual(["1", "2", "3", "4", "5"]);
  });
});
