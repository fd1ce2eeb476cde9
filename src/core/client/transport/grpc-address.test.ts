import { expect, test } from "vitest";
import { parseGrpcAddress } from "./grpc-channels.ts";

test.each([
  ["agents.example:4001", "agents.example:4001", true],
  ["127.0.0.1:4001", "127.0.0.1:4001", false],
  ["[::1]:4001", "[::1]:4001", false],
  ["localhost:80", "localhost:80", false],
  ["http://agents.example:4001", "agents.example:4001", false],
  ["https://agents.example:4001/some/path", "agents.example:4001", true],
  ["https://agents.example", "agents.example:443", true],
  ["http://agents.example", "agents.example:80", false],
  ["https://agents.example:80", "agents.example:80", true],
  ["grpc://agents.example:4001", "agents.example:4001", false],
  ["dns:///agents.example:4001", "agents.example:4001", true],
  ["dns:127.0.0.1:4001", "127.0.0.1:4001", false],
  ["grpcs://Agents.Example", "agents.example:443", true],
  ["https://user:secret@agents.example:4001", "agents.example:4001", true],
])("%s is %s, encrypted: %s", (url, authority, secure) => {
  expect(parseGrpcAddress(url)).toMatchObject({ authority, secure });
});

test("without a scheme it is encrypted as the card was, unless the caller knows better", () => {
  const secure = (cardUrl: string | undefined, tls?: boolean) =>
    parseGrpcAddress("agents.example:4001", { cardUrl, tls })?.secure;
  expect(secure("http://agents.example/.well-known/agent-card.json")).toBe(false);
  expect(secure("https://agents.example/.well-known/agent-card.json")).toBe(true);
  expect(secure("file:///card.json")).toBe(true);
  expect(secure("http://agents.example", true)).toBe(true);
  expect(secure("https://agents.example", false)).toBe(false);
  expect(parseGrpcAddress("127.0.0.1:4001", { cardUrl: "https://agents.example" })?.secure).toBe(true);
});

test.each([
  "",
  "ftp://host:1",
  "host:port",
  "host:99999",
  "/relative",
  "unix:///socket",
  "dns://8.8.8.8/host:1",
  "host:1/path",
])("%j is no address", (url) => {
  expect(parseGrpcAddress(url)).toBeUndefined();
});
