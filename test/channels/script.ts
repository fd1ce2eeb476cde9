/** Two who work together in a chat room: what a person or an agent asks of an agent there, and what has to come back. */
import { expect } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import type { Participant, Post } from "../../src/core/wire/channel.ts";
import { type Peer, readPosts } from "../../src/features/chat/networks/suite/channel-suite.ts";

const REPORT = "year,visitors\n2026,1024\n";

/** Writes a report when it knows the year, or waits until it is cancelled. */
export const reporter = defineAgent({
  name: "Reporter",
  description: "Writes reports.",
  skills: [{ id: "report", name: "Report", description: "Writes a report about a year.", tags: [] }],
  async *run(turn) {
    if (turn.text.includes("wait")) {
      yield turn.working("Waiting");
      await new Promise<void>((resolve) => turn.signal.addEventListener("abort", () => resolve(), { once: true }));
      return;
    }
    if (turn.history.length === 0) {
      yield turn.working("Looking at 50%");
      yield turn.inputRequired("Which year?");
      return;
    }
    const raw = Buffer.from(REPORT).toString("base64");
    yield turn.artifact({ name: "report.csv", parts: [{ raw, filename: "report.csv", mediaType: "text/csv" }] });
    yield turn.completed(`Here is ${turn.text}.`);
  },
});

interface Stage {
  readonly peer: Peer;
  readonly room: string;
  /** The agent as the peer sees it. */
  readonly agent: Participant;
  /** Files are posted as files; else as text. */
  readonly files: boolean;
}

/** Resolves with the posts of the agent, edits included. */
export async function followScript({ agent, files, peer, room }: Stage): Promise<readonly Post[]> {
  const posts: Post[] = [];
  const reader = readPosts(peer);
  const ask = (text: string) => peer.post({ room, text, mentions: [agent] });
  const answer = async (...parts: readonly string[]): Promise<Post> => {
    for (;;) {
      const post = await reader.next(({ sender }) => sender.id === agent.id);
      posts.push(post);
      if (parts.every((part) => post.text.includes(part))) return post;
    }
  };
  await ask("[A2A:discover]");
  const card = await answer("[A2A:card");
  const [, json = "{}"] = /```json\n([\s\S]*?)```/.exec(card.text) ?? [];
  expect(JSON.parse(json)).toMatchObject({
    protocol: "a2a-lite/1.0",
    agent: { name: "Reporter" },
    skills: [{ id: "report" }],
  });

  await ask("[A2A:task id=t1 skill=report]\nA report, please.");
  await answer("[A2A:status", "task=t1", "state=input-required", "Which year?");
  await ask("[A2A:task id=t1]\n2026");
  if (files) {
    const [file] = (await answer().then(async (first) => findFile(first, () => answer()))).files;
    expect(file?.name).toBe("report.csv");
    expect(Buffer.from((await file?.read(1_000)) ?? []).toString()).toBe(REPORT);
  }
  const result = posts.find(isResult) ?? (await answer("[A2A:result", "task=t1", "state=completed"));
  expect(result.text).toContain("Here is 2026.");
  if (!files) expect(result.text).toContain(REPORT.trim());

  await ask("[A2A:task id=t2]\nwait");
  await answer("[A2A:status", "task=t2", "state=working");
  await ask("[A2A:cancel task=t2]");
  await answer("[A2A:result", "task=t2", "state=cancelled");
  return posts;
}

const isResult = ({ text }: Post): boolean => text.includes("[A2A:result") && text.includes("task=t1");

/** Networks without captions post a file on its own, before the result. */
async function findFile(first: Post, next: () => Promise<Post>): Promise<Post> {
  for (let post = first; ; post = await next()) if (post.files.length > 0) return post;
}
