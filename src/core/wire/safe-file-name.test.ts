import { basename, join, posix, sep, win32 } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { safeFileName } from "./safe-file-name.ts";

describe("a safe name", () => {
  it.each([
    ["report.pdf", "report.pdf"],
    ["周报 2026.docx", "周报 2026.docx"],
    ["../../x", "x"],
    ["..\\..\\windows\\system32\\x.dll", "x.dll"],
    ["/etc/passwd", "passwd"],
    ["C:\\secrets.txt", "secrets.txt"],
    ["..", "file"],
    [".", "file"],
    ["", "file"],
    ["/", "file"],
    ["folder/", "folder"],
    ["   ", "file"],
    ["...", "file"],
    [".bashrc", "bashrc"],
    ["-rf", "rf"],
    ["~root", "root"],
    ["a\0b.txt", "a_b.txt"],
    ["a\nb\r\tc.txt", "a_b__c.txt"],
    ["gpj.\u202etxt.exe", "gpj._txt.exe"],
    ["a\u2028b\ufeff", "a_b_"],
    ["name.", "name"],
    ["name. . ", "name"],
    ["a:b", "a_b"],
    ['<>:"|?*.txt', "_______.txt"],
    ["file.txt::$DATA", "file.txt__$DATA"],
    ["CON", "_CON"],
    ["nul.txt", "_nul.txt"],
    ["com1.tar.gz", "_com1.tar.gz"],
    ["lpt9", "_lpt9"],
    ["console.log", "console.log"],
    ["con .txt", "con .txt"],
    ["\ud800.txt", "\ufffd.txt"],
    ["cafe\u0301.txt", "caf\u00e9.txt"],
    ["a\u00a0\u3000b.txt", "a b.txt"],
  ])("of %j is %j", (given, safe) => {
    expect(safeFileName(given)).toBe(safe);
  });

  it("is the fallback where there is none", () => {
    expect(safeFileName("..", "artifact")).toBe("artifact");
  });

  it("keeps the ending of a long one", () => {
    expect(safeFileName(`${"a".repeat(300)}.pdf`)).toBe(`${"a".repeat(196)}.pdf`);
    expect(safeFileName(`${"报".repeat(300)}.pdf`)).toBe(`${"报".repeat(65)}.pdf`);
    expect(safeFileName("a".repeat(300))).toBe("a".repeat(200));
    expect(safeFileName(`con.${"a".repeat(300)}`)).toBe(`_con.${"a".repeat(195)}`);
    expect(safeFileName(`x.${"a".repeat(300)}`)).toBe(`x.${"a".repeat(198)}`);
    expect(safeFileName(`${"a".repeat(115)} .${"pdf"}`)).toBe(`${"a".repeat(115)} .pdf`);
  });

  const characters = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ unit: "grapheme" }),
    fc.string({ unit: fc.constantFrom("/", "\\", ".", "..", " ", "-", "\0", "\n", ":", "con", "NUL", "\u202e", "a") }),
    fc.string({ unit: "grapheme-composite", minLength: 100, maxLength: 400 }),
  );

  it("stays in its folder, is short, and is safe already", () => {
    fc.assert(
      fc.property(characters, (given) => {
        const name = safeFileName(given);
        expect(name).not.toBe("");
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(200);
        expect(join("folder", name)).toBe(`folder${sep}${name}`);
        expect(basename(name)).toBe(name);
        expect(posix.basename(name)).toBe(name);
        expect(win32.basename(name)).toBe(name);
        expect(name).not.toMatch(/[\p{C}/\\<>:"|?*]|^[.\-~\s]|[.\s]$/u);
        expect(safeFileName(name)).toBe(name);
      }),
    );
  });
});
