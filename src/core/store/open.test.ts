import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SILENT_LOG } from "../model/ports.ts";
import { openStore } from "./open.ts";

const options = { clock: { now: () => 0, after: () => () => {} }, log: SILENT_LOG, baseDirectory: tmpdir() };

describe("openStore", () => {
  it("opens memory", async () => {
    expect((await openStore("memory:", options)).description).toBe("memory");
  });

  it("opens a file relative to the base, making its folder", async () => {
    const baseDirectory = await mkdtemp(join(tmpdir(), "open-store-"));
    const store = await openStore("sqlite:.dragoman/data.db", { ...options, baseDirectory });
    const file = join(baseDirectory, ".dragoman", "data.db");
    expect(store.description).toBe(`sqlite ${file}`);
    expect((await stat(file)).isFile()).toBe(true);
    await store.close();
    await rm(baseDirectory, { recursive: true });
  });

  it.each([
    ["postgres://user:sesame@host:port/tasks", /^The store is not a valid URL; write postgres:/],
    ["postgress://user:sesame@localhost/tasks", /^The store "postgress:\/\/…@localhost\/tasks" is of no known kind/],
    ["sqlite:", /names no file/],
    ["redis://localhost", /"redis:\/\/localhost" is of no known kind/],
  ])("refuses %s with a reason", async (spec, reason) => {
    await expect(openStore(spec, options)).rejects.toMatchObject({ name: "StoreError", code: "unavailable" });
    await expect(openStore(spec, options)).rejects.toThrow(reason);
  });
});
