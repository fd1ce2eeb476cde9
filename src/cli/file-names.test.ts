import { basename, join, resolve } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FileNames, safeFileName } from "./file-names.ts";

describe("names of downloaded files", () => {
  it.each([
    ["report.pdf", "report.pdf"],
    ["../../etc/passwd", "passwd"],
    ["C:\\Windows\\evil.exe", "evil.exe"],
    ["..", "artifact"],
    ["", "artifact"],
    [".bashrc", "bashrc"],
    ["-rf", "rf"],
    ["a\u0000b\nc", "a_b_c"],
    ["NUL.txt", "_NUL.txt"],
  ])("makes %j safe", (wanted, safe) => {
    expect(safeFileName(wanted)).toBe(safe);
  });

  it("never leaves the folder, hides a file or grows beyond what file systems take", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 400 }), (wanted) => {
        const name = safeFileName(wanted);
        expect(basename(name)).toBe(name);
        expect(resolve(join("/downloads", name))).toBe(`/downloads/${name}`);
        expect(name).not.toMatch(/^\.|^$|[\\/]/);
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(200);
      }),
    );
  });

  it("gives a name only once, also across case", () => {
    const names = new FileNames();
    expect(["a.txt", "A.txt", "a.txt", "a-2.txt"].map((name) => names.take(name))).toEqual([
      "a.txt",
      "A-2.txt",
      "a-3.txt",
      "a-2-2.txt",
    ]);
  });
});
