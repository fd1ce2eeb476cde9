import { createHmac } from "node:crypto";
import { once } from "node:events";
import { afterEach, expect, it } from "vitest";
import { WebSocket } from "ws";
import { linkCredentials } from "../contestants/protocol.ts";
import { LinkPlatform } from "./link-platform.ts";

const { agentId, ak, sk } = linkCredentials;
let platform: LinkPlatform | undefined;

afterEach(() => platform?.close());

function dial(url: string, key: string): WebSocket {
  const sign = createHmac("sha256", key).update("1").digest("base64");
  return new WebSocket(url, { headers: { "x-access-key": ak, "x-agent-id": agentId, "x-ts": "1", "x-sign": sign } });
}

/** An agent that answers every message with these results. */
async function linked(...results: object[]): Promise<LinkPlatform> {
  platform = await LinkPlatform.open();
  const socket = dial(platform.url, sk);
  socket.on("message", (data) => {
    const { params } = JSON.parse(String(data));
    for (const result of results) {
      socket.send(JSON.stringify({ taskId: params.id, msgDetail: JSON.stringify({ result }) }));
    }
  });
  await once(socket, "open");
  socket.send(JSON.stringify({ msgType: "clawd_bot_init", agentId }));
  await platform.linked();
  return platform;
}

it("counts the frames of an answer up to the last", async () => {
  const platform = await linked({ text: "hello", final: false }, { final: true }, { final: true });
  expect(await platform.say("session", "task", "hello")).toBe(2);
  expect(await platform.begin("session", "other", "hello")).toBe(1);
});

it("refuses an answer without the words", async () => {
  const platform = await linked({ text: "goodbye", final: true });
  await expect(platform.say("session", "task", "hello")).rejects.toThrow("without its words");
});

it("does not wait for an agent that is gone", async () => {
  const platform = await linked();
  const waiting = platform.say("session", "task", "hello");
  platform.close();
  await expect(waiting).rejects.toThrow("closed the link");
});

it("takes no link that is not signed", async () => {
  platform = await LinkPlatform.open();
  const [error] = await once(dial(platform.url, "another"), "error").catch((error: unknown) => [error]);
  expect(String(error)).toContain("401");
});
