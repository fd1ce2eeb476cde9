import { describe, expect, it } from "vitest";
import { FakeClock } from "../../../../core/engine/testing/fake-clock.ts";
import type { FullReply } from "../../../../core/wire/exchange.ts";
import { OfferedFiles } from "./offered-files.ts";

const BASE = "https://agents.example.com";
const MEBIBYTE = 1024 * 1024;

function setUp() {
  const clock = new FakeClock();
  const files = new OfferedFiles(clock);
  const get = (uri: string | undefined): FullReply | undefined => {
    if (uri === undefined) throw new Error("The file has no address.");
    const head = { method: "GET", path: uri.slice(BASE.length), query: "", headers: {}, remoteAddress: undefined };
    return files.answer(head);
  };
  return { clock, files, get, offers: files.offersTo("agent", () => BASE) };
}

const file = (bytes: number, more: { name?: string; mediaType?: string } = {}) => ({
  raw: Buffer.alloc(bytes).toString("base64"),
  name: more.name,
  mediaType: more.mediaType,
});

describe("offered files", () => {
  it("are there for 15 minutes at most", async () => {
    const { clock, get, offers } = setUp();
    const uri = offers.offer("t", file(1));
    await clock.advance(15 * 60_000 - 1);
    expect(get(uri)?.status).toBe(200);
    await clock.advance(1);
    expect(get(uri)?.status).toBe(404);
  });

  it("go with their task, and with no task of another agent", () => {
    const { files, get, offers } = setUp();
    const other = files.offersTo("other", () => BASE).offer("t", file(1));
    const [one, two, next] = [offers.offer("t", file(1)), offers.offer("t", file(1)), offers.offer("u", file(1))];
    offers.withdraw("t");
    expect([one, two, next, other].map((uri) => get(uri)?.status)).toEqual([404, 404, 200, 200]);
  });

  it("are bounded in size and in number, and have room again when some have gone", async () => {
    const { clock, offers } = setUp();
    const large = file(64 * MEBIBYTE);
    for (const task of ["a", "b", "c", "d"]) expect(offers.offer(task, large)).toBeDefined();
    expect(offers.offer("e", file(1))).toBeUndefined();
    offers.withdraw("a");
    for (let index = 0; index < 997; index++) expect(offers.offer("many", file(1))).toBeDefined();
    expect(offers.offer("many", file(1))).toBeUndefined();
    await clock.advance(15 * 60_000);
    expect(offers.offer("e", file(1))).toBeDefined();
  });

  it("have no address where none is known", () => {
    const { files } = setUp();
    expect(files.offersTo("agent", () => undefined).offer("t", file(1))).toBeUndefined();
  });

  it.each([
    [{ mediaType: "text/plain; charset=utf-8" }, "text/plain; charset=utf-8", "file"],
    [{ mediaType: "jpeg", name: "a.jpg" }, "image/jpeg", "a.jpg"],
    [{ name: "a.pdf" }, "application/pdf", "a.pdf"],
    [{}, "application/octet-stream", "file"],
    [{ mediaType: "text/html\r\nset-cookie: a=b" }, "application/octet-stream", "file"],
    [{ mediaType: "nonsense" }, "application/octet-stream", "file"],
    [{ name: '../../etc/a"; filename="b.exe\r\nx: y' }, "application/octet-stream", "a_; filename=_b.exe__x_ y"],
  ])("of %j are %s", (more, type, name) => {
    const { get, offers } = setUp();
    const { headers } = get(offers.offer("t", file(1, more))) ?? {};
    expect(headers?.["content-type"]).toBe(type);
    expect(headers?.["content-disposition"]?.split('"')[1]).toBe(name);
    expect(JSON.stringify(Object.values(headers ?? {}))).not.toMatch(/[\r\n]|\\[rn]/);
  });

  it("leave other paths alone", () => {
    const { files } = setUp();
    const head = { method: "GET", query: "", headers: {}, remoteAddress: undefined };
    expect(files.answer({ ...head, path: "/openclaw/v1/ws/link" })).toBeUndefined();
    expect(files.answer({ ...head, path: "/openclaw/v1/files/" })?.status).toBe(404);
  });
});
