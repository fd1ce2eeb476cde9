import { describe, expect, it } from "vitest";
import { FileNames } from "./task-download.ts";

describe("names of downloaded files", () => {
  it("are safe", () => {
    expect(new FileNames().reserve("../../etc/passwd")).toBe("passwd");
    expect(new FileNames().reserve("..")).toBe("artifact");
  });

  it("gives a name only once, also across case", () => {
    const names = new FileNames();
    expect(["a.txt", "A.txt", "a.txt", "a-2.txt"].map((name) => names.reserve(name))).toEqual([
      "a.txt",
      "A-2.txt",
      "a-3.txt",
      "a-2-2.txt",
    ]);
  });
});
