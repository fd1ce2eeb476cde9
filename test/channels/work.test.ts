/** Work in rooms of real servers, as a participant sees it that knows texts only. */

import { describe, expect, it } from "vitest";
import { RAW_NETWORKS, type RawPeer, type RawRoom } from "./raw-peers.ts";
import { startInRoom } from "./stage.ts";
import { REPORT, translator } from "./translator.ts";

/** A message that may come in several posts: all of them, without their markers. */
async function wholeMessage(peer: RawPeer, from: string, marker: RegExp): Promise<string> {
  const bodies: string[] = [];
  for (let more = true; more; ) {
    const { text } = await peer.next(from, marker);
    const [head = "", part = "1", of = part] = /\[A2A:[^\]]*?(?:part=(\d+)\/(\d+))?\]/.exec(text) ?? [];
    bodies.push(text.slice(text.indexOf(head) + head.length).trim());
    more = part !== of;
  }
  return bodies.join("");
}

describe.each(RAW_NETWORKS.filter(({ isAvailable }) => isAvailable))("in a room of $name", (network) => {
  async function enter(): Promise<{ readonly room: RawRoom; readonly peer: RawPeer }> {
    const room = await network.start();
    const peer = await room.join("person");
    await startInRoom({
      agents: { translator },
      channels: [{ ...room.settings("agent"), agent: "translator", allowPeers: [room.idOf("person")] }],
    });
    return { room, peer };
  }

  it("an agent is discovered, gets a task, asks, and delivers; another task is cancelled", async () => {
    const { peer } = await enter();
    await peer.say("@agent [A2A:discover]");
    const card = await wholeMessage(peer, "agent", /\[A2A:card\b/);
    expect(card).toContain("Translator");
    expect(card).toMatch(/"protocol": ?"a2a-lite\/1.0"/);

    await peer.say("@agent [A2A:task id=t1 skill=translate] Translate the report.");
    const question = await peer.next("agent", /\[A2A:status task=t1 state=input-required\b/);
    expect(question.text).toContain("Into which language?");

    await peer.say("@agent [A2A:task id=t1] French");
    const result = await peer.next("agent", /\[A2A:result task=t1 state=completed\b/);
    expect(result.text).toContain("In French:");
    if (network.hasFiles) {
      expect(result.text).toContain("report.txt");
      const reply = await fetch(result.files[0] ?? "");
      expect(await reply.text()).toBe(REPORT);
    } else expect(result.text).toContain(REPORT);

    await peer.say("@agent [A2A:task id=t2] Wait");
    await peer.next("agent", /\[A2A:status task=t2 state=working progress=50%/);
    await peer.say("@agent [A2A:cancel task=t2 reason=enough]");
    await peer.next("agent", /\[A2A:result task=t2 state=cancelled\b/);
    expect(peer.posts.filter(({ text }) => /\[A2A:result /.test(text))).toHaveLength(2);
  });

  it("a person is answered in plain language", async () => {
    const { peer } = await enter();
    await peer.say("@agent Please translate this.");
    const question = await peer.next("agent", /Into which language\?/);
    expect(question.text).not.toContain("[A2A:");
    await peer.say("@agent French");
    expect((await peer.next("agent", /In French:/)).text).not.toContain("[A2A:");
  });

  it("others get no work, and are not answered twice", async () => {
    const { peer, room } = await enter();
    const helper = await room.join("helper");
    for (const id of ["a", "b", "c"]) await helper.say(`@agent [A2A:task id=${id}] Translate.`);
    const refusal = await helper.next("agent", /state=rejected\b/);
    expect(refusal.text).toContain("task=a");
    await peer.say("@agent [A2A:task id=mine] Translate.");
    await peer.next("agent", /\[A2A:status task=mine state=input-required\b/);
    const toHelper = helper.posts.filter(({ from, text }) => from === "agent" && !text.includes("task=mine"));
    expect(toHelper).toHaveLength(1);
  });
});
