import { expect, it } from "vitest";
import { FakeClock, settle } from "../../engine/testing/fake-clock.ts";
import type { Link } from "../../wire/link.ts";
import { Connection, type FrameSource, type Unconfirmed } from "./connection.ts";

/** A platform that answers questions when the test says so. */
function createScene() {
  const clock = new FakeClock();
  const sent: string[] = [];
  const answers: ((received: boolean) => void)[] = [];
  const link: Pick<Link, "send" | "received"> = {
    send: (text) => void sent.push(text),
    received: () => new Promise((resolve) => void answers.push(resolve)),
  };
  const told: string[] = [];
  const reply: Unconfirmed = {
    pingSent: () => void told.push("asked"),
    confirmed: (all) => void told.push(all ? "all" : "some"),
  };
  const line = new Connection<Unconfirmed>(link as Link, clock);
  const say = async (text: string, once = false): Promise<void> => {
    let waits = true;
    const talker: FrameSource<Unconfirmed> = {
      peek: () => (waits ? { text, reply, once } : undefined),
      sent: () => {
        waits = false;
      },
    };
    line.wake(talker);
    await settle();
  };
  return { answers, clock, line, reply, say, sent, told };
}

it("what was sent before a question is confirmed by its answer, also if more was sent since", async () => {
  const { answers, clock, line, say, sent, told } = createScene();
  await say("card", true);
  expect(answers).toHaveLength(1);
  await say("text");
  answers[0]?.(true);
  await settle();
  expect(told).toEqual(["asked", "some"]);
  await clock.advance(10);
  answers[1]?.(true);
  await settle();
  expect(told).toEqual(["asked", "some", "asked", "all"]);
  expect(line.end()).toEqual([]);
  expect(sent).toEqual(["card", "text"]);
});

it("nothing is confirmed by a link that ends instead of answering", async () => {
  const { answers, line, reply, say, told } = createScene();
  await say("final", true);
  answers[0]?.(false);
  await settle();
  expect(told).toEqual(["asked"]);
  expect(line.end()).toEqual([reply]);
});
