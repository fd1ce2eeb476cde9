import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createGuardedFetch, type GuardedFetchOptions } from "../../../../core/auth/guarded-fetch/guarded-fetch.ts";
import { FakeClock } from "../../../../core/engine/testing/fake-clock.ts";
import type { Message, Part } from "../../../../core/model/message.ts";
import { SILENT_LOG } from "../../../../core/model/ports.ts";
import { withInlineBytes, XIAOYI_EXTENSION } from "../../codec/metadata.ts";
import { createFileIntake } from "./file-intake.ts";
import { FileStore } from "./file-store.ts";

const UNKNOWN = "application/octet-stream";
const JPEG = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 1, 2, 3]);

/** A file that the platform has, and nobody can fetch. */
const KEPT: Part = { url: "urn:xiaoyi:file:1", metadata: { [XIAOYI_EXTENSION]: { fileId: "1" } } };

const PLACES: Readonly<Record<string, RequestListener>> = {
  "/words.txt": (_, response) => response.end("\ufeff早上好"),
  "/utf-16": (_, response) => response.end(Buffer.from("\ufeff早上好", "utf16le")),
  "/photo": (_, response) => response.end(JPEG),
  "/empty.txt": (_, response) => response.end(),
  "/page": (_, response) => response.setHeader("content-type", "text/html; charset=utf-8").end("<html>Log in!</html>"),
  "/missing": (_, response) => response.writeHead(404, { "content-type": "text/html" }).end("<html>Not found</html>"),
  "/broken": (_, response) => response.writeHead(500).end("<html>Oops</html>"),
  "/elsewhere": (_, response) => response.writeHead(302, { location: "/words.txt" }).end(),
  "/inside": (_, response) => response.writeHead(302, { location: "http://169.254.169.254/latest/meta-data" }).end(),
  "/large": (_, response) => response.end(Buffer.alloc(40_000)),
  "/endless": (_, response) => {
    const write = (): void => void (response.destroyed || response.write(Buffer.alloc(10_000), write));
    write();
  },
  "/slow": (_, response) => void response.write("a"),
  "/torn": (_, response) => {
    response.setHeader("content-length", 100);
    response.write("half", () => response.destroy());
  },
};

let server: Server;
let origin: string;
let folder: string;
const asked: string[] = [];
const logged: unknown[] = [];
const log = { ...SILENT_LOG, warn: (...line: unknown[]) => void logged.push(line) };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "intake-"));
  server = createServer((request, response) => {
    const path = new URL(request.url ?? "", "http://x").pathname;
    asked.push(path);
    const answer = PLACES[path] ?? ((_, nowhere) => nowhere.writeHead(404).end());
    answer(request, response);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true });
});

async function takeIn(parts: readonly Part[], options: GuardedFetchOptions = {}): Promise<readonly Part[]> {
  const store = new FileStore({ folder, quotaBytes: 1e6, keepMs: 1e6, clock: new FakeClock(), log });
  const limits = { maxBytes: 30_000, timeoutMs: 60_000, maxRedirects: 0, allow: ["127.0.0.1"], ...options };
  const intake = createFileIntake({ fetch: createGuardedFetch(limits), store, log });
  const message: Message = { messageId: "m", role: "ROLE_USER", contextId: "s", parts };
  const taken = intake.hasFiles(message) ? await intake.download(message, "en") : message;
  expect({ ...taken, parts: [] }).toEqual({ ...message, parts: [] });
  return taken.parts;
}

const at = (path: string, more: object = {}): Part => ({ url: `${origin}${path}`, ...more });

describe("files that an agent reads as text", () => {
  it.each([
    ["by their kind", "/words.txt", { filename: "a.bin", mediaType: "text/plain" }, "a.bin"],
    ["by the end of their name", "/words.txt", { filename: "a.md" }, "a.md"],
    ["by that where their kind says nothing", "/words.txt", { filename: "a.csv", mediaType: UNKNOWN }, "a.csv"],
    ["by the end of their address", "/words.txt?key=1", {}, "words.txt"],
    ["in another encoding that they name", "/utf-16", { filename: "x.txt" }, "x.txt"],
  ])("are known %s", async (_, path, more, filename) => {
    expect(await takeIn([at(path, more)])).toEqual([{ text: "早上好", filename }]);
  });

  it("may be empty, and may have come with the message", async () => {
    const raw = Buffer.from("a,b\n").toString("base64");
    expect(await takeIn([at("/empty.txt"), { raw, filename: "t.csv" }])).toEqual([
      { text: "", filename: "empty.txt" },
      { text: "a,b\n", filename: "t.csv" },
    ]);
  });

  it("are not text after all where their bytes are not", async () => {
    const [part, other] = await takeIn([
      at("/photo", { filename: "a.txt" }),
      { raw: JPEG.toString("base64"), mediaType: "text/plain" },
    ]);
    expect(part).toMatchObject({ url: expect.stringMatching(/^file:/), mediaType: "text/plain" });
    expect(other).toEqual({ raw: JPEG.toString("base64"), mediaType: "text/plain" });
  });
});

describe("other files", () => {
  it("are on this machine, under safe names", async () => {
    const [part] = await takeIn([at("/photo", { filename: "../../x/照片.jpg", mediaType: "image/jpeg" })]);
    expect(part).toEqual({
      url: expect.stringMatching(/^file:/),
      filename: "照片.jpg",
      mediaType: "image/jpeg",
    });
    const path = fileURLToPath((part as { url: string }).url);
    expect(path.startsWith(folder)).toBe(true);
    expect(await readFile(path)).toEqual(JPEG);
  });

  it("keep their place among the other parts", async () => {
    const data = { data: { a: 1 } };
    const parts = await takeIn([{ text: "Look:" }, at("/photo"), data, { raw: "AAAA" }, at("/words.txt")]);
    expect(parts).toMatchObject([{ text: "Look:" }, { filename: "photo" }, data, { raw: "AAAA" }, { text: "早上好" }]);
  });

  it("are six at most", async () => {
    const parts = await takeIn(Array.from({ length: 8 }, () => at("/photo")));
    const note = { text: expect.stringContaining("more than 6") };
    expect(parts.slice(6)).toEqual([note, note]);
  });

  it("need not be waited for where there are none", async () => {
    const parts: Part[] = [{ text: "hi" }, { data: {} }, { raw: "AAAA" }, KEPT];
    expect(await takeIn(parts)).toBe(parts);
  });
});

describe("files that cannot be had", () => {
  /** What is left of the part, which is the only one that is logged. */
  const failed = async (part: Part, options: GuardedFetchOptions = {}): Promise<readonly Part[]> => {
    const before = logged.length;
    const parts = await takeIn([part, { text: "and this" }], options);
    expect(parts.at(-1)).toEqual({ text: "and this" });
    expect(logged).toHaveLength(before + 1);
    return parts.slice(0, -1);
  };
  const remark = (words: string): Part => ({ text: `[The file "x" could not be fetched. ${words}]` });

  it.each([
    ["/missing", "It was answered with 404."],
    ["/broken", "It was answered with 500."],
    ["/page", "A web page came instead of the file."],
    ["/large", "It is larger than allowed."],
    ["/endless", "It is larger than allowed."],
    ["/torn", "Its address could not be reached."],
  ])("%s: are reported as such, and stay where they are", async (path, words) => {
    const part = at(path, { filename: "x" });
    expect(await failed(part)).toEqual([part, remark(words)]);
  });

  it("/slow: are not waited for longer than allowed", async () => {
    const part = at("/slow", { filename: "x" });
    expect(await failed(part, { timeoutMs: 50 })).toEqual([part, remark("It did not come in time.")]);
  });

  it.each(["/elsewhere", "/inside"])("%s: are not named to the agent, which might be led on", async (path) => {
    const words = "Its address must not be reached from here.";
    expect(await failed(at(path, { filename: "x" }))).toEqual([remark(words)]);
  });

  it.each([
    "http://127.0.0.1:1/",
    "http://localhost/x",
    "http://[::1]/x",
    "http://0x7f.1/x",
    "http://2130706433/x",
    "http://10.0.0.1/x",
    "ht\ttp://10.0.0.1/x",
    "http://192.168.1.1/x",
    "http://169.254.169.254/latest/meta-data/",
    "http://metadata.google.internal/",
    "http://[::ffff:127.0.0.1]/x",
    "http://100.64.0.1/",
    "https://user:password@files.example/x",
    "http://",
    "//127.0.0.1/x",
    "",
    "file:///etc/passwd",
    " FILE:///etc/passwd",
    "\u0001file:///etc/passwd",
    "fi\tle:///etc/passwd",
    "fi\nle:///etc/passwd",
    "FILE:/etc/passwd",
    "data:text/plain,hi",
    "gopher://files.example/",
    "urn:xiaoyi:file:1",
  ])("%j: are neither asked for nor named to the agent", async (url) => {
    const before = asked.length;
    const [note, ...others] = await failed({ url, filename: "x" }, { allow: [] });
    expect(note).toEqual({
      text: expect.stringMatching(/^\[The file "x" could not be fetched\. Its address (is not|must not) /),
    });
    expect(others).toEqual([]);
    expect(asked).toHaveLength(before);
  });

  it("are named as they were read here, not as another might read them", async () => {
    const [kept] = await failed({ url: `${origin.replace("http", "ht\ntp")}\\@files.example/missing` });
    expect(kept).toEqual(at("/@files.example/missing"));
  });

  it("that cannot be stored are reported as such, without the error of the disk", async () => {
    const intake = createFileIntake({
      fetch: createGuardedFetch({ allow: ["127.0.0.1"] }),
      store: { add: () => Promise.reject(new Error("ENOSPC: /the/inside/of/the/machine")) },
      log,
    });
    const { parts } = await intake.download({ messageId: "m", role: "ROLE_USER", parts: [at("/photo")] }, "en");
    expect(parts).toMatchObject([at("/photo"), { text: "[The file could not be fetched. It could not be stored.]" }]);
  });

  it("are taken as they came with the message, where they did", async () => {
    const carrying = (raw: string, more: object) => withInlineBytes({ url: `${origin}/missing`, ...more }, raw);
    const text = Buffer.from("早上好").toString("base64");
    const photo = JPEG.toString("base64");
    expect(await failed(carrying(text, { filename: "x.txt" }))).toEqual([{ text: "早上好", filename: "x.txt" }]);
    expect(await failed(carrying(photo, { mediaType: "image/jpeg" }))).toEqual([
      { raw: photo, mediaType: "image/jpeg" },
    ]);
    expect(await failed(withInlineBytes({ url: "http://10.0.0.1/x" }, photo), { allow: [] })).toEqual([{ raw: photo }]);
    expect(await takeIn([withInlineBytes({ url: `${origin}/words.txt` }, photo)])).toEqual([
      { text: "早上好", filename: "words.txt" },
    ]);
  });

  it("leave neither their address in the log nor half a file on the disk", async () => {
    expect(JSON.stringify(logged)).not.toMatch(/missing|endless|user:password|latest|\/the\/inside/);
    expect(await readdir(join(folder, "incoming"))).toEqual([]);
  });
});
