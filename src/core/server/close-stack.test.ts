import { describe, expect, it } from "vitest";
import { CloseStack, openAll } from "./close-stack.ts";

describe("a close stack", () => {
  it("closes what was opened last first, each step once", async () => {
    const closing = new CloseStack();
    const closed: string[] = [];
    closing.add(() => closed.push("first"));
    closing.add(async () => {
      await Promise.resolve();
      closed.push("second");
    });
    await closing.close();
    await closing.close();
    expect(closed).toEqual(["second", "first"]);
  });

  it("runs every step although one fails, and rejects with the first failure", async () => {
    const closing = new CloseStack();
    const closed: string[] = [];
    closing.add(() => closed.push("first"));
    closing.add(() => Promise.reject(new Error("second")));
    closing.add(() => {
      throw new Error("third");
    });
    await expect(closing.close()).rejects.toThrow("third");
    expect(closed).toEqual(["first"]);
  });

  it("closes what a start-up opened before it failed, and passes its error on", async () => {
    const closed: string[] = [];
    const starting = openAll(async (closing) => {
      closing.add(() => closed.push("store"));
      closing.add(() => Promise.reject(new Error("not closed")));
      throw new Error("not opened");
    });
    await expect(starting).rejects.toThrow("not opened");
    expect(closed).toEqual(["store"]);
  });
});
