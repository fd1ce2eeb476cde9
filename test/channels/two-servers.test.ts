/** Two servers of Dragoman in one room of a real server, with a participant that reads along. */

import { describe, expect, it } from "vitest";
import { connect } from "../../src/client.ts";
import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import type { Task } from "../../src/core/model/task.ts";
import { createChatPeerAgent } from "../../src/features/chat/server/chat-peer-agent.ts";
import { RAW_NETWORKS, type RawRoom } from "./raw-peers.ts";
import { startInRoom } from "./stage.ts";
import { REPORT, translator } from "./translator.ts";

describe.each(RAW_NETWORKS.filter(({ isAvailable }) => isAvailable))("in a room of $name", (network) => {
  /** `agent` serves the translator; `helper` calls it for whoever calls its agent `far`. */
  async function startBoth(room: RawRoom): Promise<string> {
    await startInRoom({
      agents: { translator },
      channels: [{ ...room.settings("agent"), agent: "translator", allowPeers: [room.idOf("helper")] }],
    });
    const address = `a2a-lite:${network.name}/${room.room}#${room.idOf("agent")}`;
    const { url } = await startInRoom({
      agents: { echo: createEchoAgent(), far: createChatPeerAgent("far", address, {}) },
      channels: [{ ...room.settings("helper"), agent: "echo" }],
    });
    return `${url}/agents/far`;
  }

  it("one server gives work to the other, for a caller over A2A", async () => {
    const room = await network.start();
    const reader = await room.join("person");
    const far = await connect(await startBoth(room));
    const asked = await far.send("Translate the report.");
    const { id = "", status } = "task" in asked ? asked.task : {};
    expect(status?.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(JSON.stringify(status?.message)).toContain("Into which language?");
    const { text } = await reader.next("helper", /\[A2A:task id=\S+/);
    const [, theirs = ""] = /\[A2A:task id=([^\s\]]+)/.exec(text) ?? [];
    await reader.next("agent", new RegExp(`\\[A2A:status task=${theirs} state=input-required\\b`));

    const answered = await far.send({ message: { taskId: id, parts: [{ text: "French" }] } });
    const task = "task" in answered ? answered.task : undefined;
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(textOf(task)).toContain("In French:");
    expect(textOf(task)).toContain(REPORT);
    await reader.next("helper", new RegExp(`\\[A2A:task id=${theirs}\\b.*French`, "s"));
    await reader.next("agent", new RegExp(`\\[A2A:result task=${theirs} state=completed\\b`));

    const waiting = await far.send({
      message: { parts: [{ text: "Wait" }] },
      configuration: { returnImmediately: true },
    });
    await reader.next("agent", /\[A2A:status task=\S+ state=working\b/);
    const cancelled = await far.cancel("task" in waiting ? waiting.task.id : "");
    expect(cancelled.status.state).toBe("TASK_STATE_CANCELED");
    await reader.next("helper", /\[A2A:cancel task=/);
    await reader.next("agent", /\[A2A:result task=\S+ state=cancelled\b/);
  });
});

function textOf(task: Task | undefined): string {
  return (task?.artifacts ?? [])
    .flatMap(({ parts }) => parts)
    .map((part) => ("text" in part ? part.text : "raw" in part ? Buffer.from(part.raw, "base64").toString() : ""))
    .join("\n");
}
