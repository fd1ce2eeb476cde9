import { connect } from "node:net";
import { expect, it } from "vitest";
import { listenOnLoopback } from "./authorization-code.ts";

const NEVER = new AbortController().signal;

it("accepts the caller that knows the state, and no one else", async () => {
  const { answer, close, redirectUri } = await listenOnLoopback({ state: "secret", signal: NEVER });
  expect(redirectUri).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
  const ask = async (path: string, method = "GET") => (await fetch(new URL(path, redirectUri), { method })).status;
  const statuses = [
    await ask("/callback?code=stolen"),
    await ask("/callback?code=stolen&state=guess"),
    await ask("/?code=stolen&state=secret"),
    await ask("/callback?code=stolen&state=secret", "POST"),
    await ask("/callback?code=right&state=secret"),
  ];
  expect(statuses).toEqual([400, 400, 404, 404, 200]);
  expect((await answer).searchParams.get("code")).toBe("right");
  await close();
  await expect(fetch(redirectUri)).rejects.toThrow();
});

it("survives requests that are none", async () => {
  const { close, redirectUri } = await listenOnLoopback({ state: "secret", signal: NEVER });
  const { port } = new URL(redirectUri);
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect(Number(port), "127.0.0.1", () => socket.write("GET // HTTP/1.1\r\nhost: a\r\n\r\n"));
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("utf8");
    });
    socket.on("end", () => resolve(text)).on("error", reject);
  });
  expect(answer).toMatch(/^HTTP\/1\.1 404/);
  await close();
});

it("ends with the one who waits, and says which port is taken", async () => {
  const stop = new AbortController();
  const first = await listenOnLoopback({ state: "s", signal: stop.signal });
  const port = Number(new URL(first.redirectUri).port);
  await expect(listenOnLoopback({ state: "s", port, signal: NEVER })).rejects.toThrow(`port ${port}`);
  stop.abort();
  await expect(first.answer).rejects.toMatchObject({ code: "aborted" });
  await first.close();
});
