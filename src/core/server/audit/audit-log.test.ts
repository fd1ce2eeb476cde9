import { mkdtemp, readFile, rename, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FakeClock } from "../../engine/testing/fake-clock.ts";
import type { CounterName, LogFields } from "../../model/ports.ts";
import { type AuditedCall, AuditLog, toCallRecord } from "./audit-log.ts";

const CALL: AuditedCall = {
  caller: { owner: "alice", authenticated: true, address: "192.0.2.1" },
  agent: "echo",
  dialect: "a2a-v1",
  operation: "get",
  task: "task-1",
  result: "OK",
  duration: 3,
};
const RECORD = toCallRecord(CALL);

/** An audit log on a disk that the test can break. */
function auditOn(disk: { broken: boolean }, required = false) {
  const clock = new FakeClock();
  const written: string[] = [];
  const counted: CounterName[] = [];
  const logged: [string, LogFields][] = [];
  const write = (fields: LogFields, message: string) => logged.push([message, fields]);
  const audit = new AuditLog(
    { file: "/audit.jsonl", required },
    {
      clock,
      log: { debug: write, info: write, warn: write, error: write },
      meter: { count: (name) => counted.push(name) },
      append: async (_, text) => {
        if (disk.broken) throw new Error("no space left");
        if (text !== "") written.push(text);
      },
    },
  );
  return { audit, clock, written, counted, logged };
}

describe("the audit log", () => {
  it("appends one line of JSON per record, to a file that only its owner may read", async () => {
    const folder = await mkdtemp(join(tmpdir(), "audit-"));
    const file = join(folder, "audit.jsonl");
    const clock = new FakeClock();
    const quiet = { debug() {}, info() {}, warn() {}, error() {} };
    const audit = new AuditLog({ file }, { clock, log: quiet, meter: { count() {} } });
    await audit.open();
    audit.record(RECORD);
    const { caller: _, task: __, ...refused } = CALL;
    const address = "192.0.2.9";
    audit.record(toCallRecord({ ...refused, address, operation: "authenticate", result: "UNAUTHENTICATED" }));
    await audit.close();
    const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      {
        time: new Date(clock.now()).toISOString(),
        owner: "alice",
        authenticated: true,
        address: "192.0.2.1",
        agent: "echo",
        dialect: "a2a-v1",
        operation: "get",
        task: "task-1",
        result: "OK",
        ms: 3,
      },
      expect.objectContaining({ authenticated: false, address: "192.0.2.9", result: "UNAUTHENTICATED" }),
    ]);
    expect((await stat(file)).mode & 0o077).toBe(0);
    await rename(file, `${file}.1`);
    audit.record(RECORD);
    await audit.close();
    expect((await readFile(file, "utf8")).split("\n")).toHaveLength(2);
  });

  it("writes what comes in a short time together", async () => {
    const { audit, clock, written } = auditOn({ broken: false });
    for (let at = 0; at < 100; at++) audit.record(RECORD);
    expect(written).toEqual([]);
    await clock.advance(100);
    await audit.close();
    expect(written).toHaveLength(1);
    expect(written[0]?.trimEnd().split("\n")).toHaveLength(100);
  });

  it("shortens what a caller may have made up, and never breaks a line", async () => {
    const { audit, written } = auditOn({ broken: false });
    audit.record(toCallRecord({ ...CALL, task: `a\n${"x".repeat(10_000)}` }));
    await audit.close();
    const [line = "", rest] = (written[0] ?? "").split("\n");
    expect(rest).toBe("");
    expect(JSON.parse(line).task).toHaveLength(256);
  });

  it("keeps what a failing disk did not take, says so once and writes it later, in order", async () => {
    const disk = { broken: true };
    const { audit, clock, written, counted, logged } = auditOn(disk);
    audit.record({ ...RECORD, task: "first" });
    await clock.advance(100);
    audit.record({ ...RECORD, task: "second" });
    await clock.advance(5_000);
    expect(written).toEqual([]);
    expect(() => audit.assertWritable()).not.toThrow();
    expect(logged.map(([message]) => message)).toEqual(["The audit log cannot be written."]);
    expect(counted.length).toBeGreaterThan(1);
    disk.broken = false;
    await audit.close();
    expect(written.join("").match(/first|second/g)).toEqual(["first", "second"]);
    expect(logged.at(-1)?.[0]).toBe("The audit log can be written again.");
  });

  it("costs bounded memory while nothing can be written", async () => {
    const { audit, counted } = auditOn({ broken: true });
    const wide = { ...RECORD, agent: "x".repeat(100_000) };
    for (let at = 0; at < 200; at++) audit.record(wide);
    expect(counted.filter((name) => name === "audit_dropped").length).toBeGreaterThan(100);
  });

  it("refuses all work while it is required and cannot be written", async () => {
    const disk = { broken: true };
    const { audit, clock } = auditOn(disk, true);
    await expect(audit.open()).rejects.toThrow("/audit.jsonl");
    disk.broken = false;
    await audit.open();
    expect(() => audit.assertWritable()).not.toThrow();
    disk.broken = true;
    audit.record(RECORD);
    await clock.advance(100);
    expect(() => audit.assertWritable()).toThrow("cannot record");
    disk.broken = false;
    await clock.advance(1_000);
    expect(() => audit.assertWritable()).not.toThrow();
  });
});
