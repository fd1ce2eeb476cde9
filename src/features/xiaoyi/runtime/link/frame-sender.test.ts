import { expect, it } from "vitest";
import { FakeClock, settle } from "../../../../core/engine/testing/fake-clock.ts";
import type { Link } from "../../../../core/wire/link.ts";
import { FrameSender, type FrameSource, type Unconfirmed } from "./frame-sender.ts";

/** A platform that answers pings when the test does. */
function createScene() {
  const clock = new FakeClock();
  const sent: string[] = [];
  const answers: ((received: boolean) => void)[] = [];
  const link: Pick<Link, "send" | "received"> = {
    send: (text) => void sent.push(text),
    received: () => new Promise((resolve) => void answers.push(resolve)),
  };
  const calls: string[] = [];
  const reply: Unconfirmed = {
    pingSent: () => void calls.push("pinged"),
    confirmed: (all) => void calls.push(all ? "all" : "some"),
    resend: () => void calls.push("resend"),
  };
  const line = new FrameSender(link as Link, clock);
  const send = async (text: string, once = false): Promise<void> => {
    let waits = true;
    const source: FrameSource = {
      peek: () => (waits ? { text, reply, once } : undefined),
      sent: () => {
        waits = false;
      },
    };
    line.wake(source);
    await settle();
  };
  return { answers, clock, line, send, sent, calls };
}

it("a pong confirms what was sent before its ping, also if more was sent since", async () => {
  const { answers, clock, line, send, sent, calls } = createScene();
  await send("card", true);
  expect(answers).toHaveLength(1);
  await send("text");
  answers[0]?.(true);
  await settle();
  expect(calls).toEqual(["pinged", "some"]);
  await clock.advance(10);
  answers[1]?.(true);
  await settle();
  expect(calls).toEqual(["pinged", "some", "pinged", "all"]);
  line.end();
  expect(calls).toHaveLength(4);
  expect(sent).toEqual(["card", "text"]);
});

it("a link that closes without a pong confirms nothing, and everything is sent again", async () => {
  const { answers, line, send, calls } = createScene();
  await send("final", true);
  answers[0]?.(false);
  await settle();
  expect(calls).toEqual(["pinged"]);
  line.end();
  expect(calls).toEqual(["pinged", "resend"]);
});
