import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, it } from "vitest";
import { createForwardingAgent, type Peer } from "./forward.ts";
import { inlineStoredFiles } from "./stored-files.ts";
import { runToEnd } from "./testing/turns.ts";

const folder = mkdtempSync(join(tmpdir(), "dragoman-stored-files-"));
afterAll(() => rmSync(folder, { recursive: true }));

const digestOf = (content: Buffer) => createHash("sha256").update(content).digest("hex");

/** URL of a file as the server stores it. */
function store(content: Buffer, name = "photo.jpg", digest = digestOf(content)): string {
  mkdirSync(join(folder, digest), { recursive: true });
  const path = join(folder, digest, name);
  writeFileSync(path, content);
  return pathToFileURL(path).href;
}

const PHOTO = Buffer.from([0xff, 0xd8, 0xff, 0x00]);
const PART = { filename: "photo 1.jpg", mediaType: "image/jpeg", metadata: { a: 1 } };

it("sends the bytes of a stored file with what else is known of it, and other parts as they are", async () => {
  const others = [{ text: "look" }, { url: "https://a.example/x" }, { raw: "AA==" }, { data: { url: "file:///x" } }];
  const url = store(PHOTO, "photo 1.jpg");
  expect(await inlineStoredFiles([...others, { ...PART, url }])).toEqual([
    ...others,
    { ...PART, raw: PHOTO.toString("base64") },
  ]);
});

it("reads no file that its sender may not have had, whatever the URL is", async () => {
  const secret = join(folder, "secret.txt");
  writeFileSync(secret, "secret");
  const foreign = store(Buffer.from("secret"), "secret.txt", "0".repeat(64));
  const digest = digestOf(PHOTO);
  const untouched = [
    { url: pathToFileURL(secret).href },
    { url: `${pathToFileURL(folder).href}/${digest}/../secret.txt` },
    { url: `file://host/${digest}/photo.jpg` },
    { url: `file:///${digest}/%00%2F` },
  ];
  expect(await inlineStoredFiles([...untouched, { url: foreign }])).toEqual([
    ...untouched,
    { text: "[The file could not be sent. It is no longer stored.]" },
  ]);
});

it("says in place of a file that it is too large, or gone", async () => {
  const large = store(Buffer.alloc(12 * 1024 * 1024 + 1), "large.bin");
  const gone = large.replace("large.bin", "gone.bin");
  expect(
    await inlineStoredFiles([
      { url: large, filename: "large.bin" },
      { url: gone, filename: "gone.bin" },
    ]),
  ).toEqual([
    { text: '[The file "large.bin" could not be sent. It is larger than allowed.]' },
    { text: '[The file "gone.bin" could not be sent. It is no longer stored.]' },
  ]);
});

it("is for agents elsewhere: one in this process gets the path", async () => {
  const url = store(PHOTO);
  const received: unknown[] = [];
  const peerOf = (isLocal: boolean): Peer => ({
    isLocal,
    async dispatch(operation) {
      received.push(operation.kind === "stream" && operation.message.parts);
      throw new Error("It is not answered.");
    },
  });
  for (const isLocal of [true, false]) {
    const agent = createForwardingAgent({ name: "a", description: "Forwards.", peer: peerOf(isLocal) });
    await expect(runToEnd(agent, { parts: [{ url }] })).rejects.toThrow("not answered");
  }
  expect(received).toEqual([[{ url }], [{ raw: PHOTO.toString("base64") }]]);
});
