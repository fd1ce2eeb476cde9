import { readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { MESSAGE_CODECS } from "../../src/features/conformance/cli/conformance.ts";
import { type Report, runConformance } from "../../src/features/conformance/index.ts";
import type { Comparison } from "./comparison.ts";
import { readCard } from "./report-helpers.ts";
import { serveSdk } from "./sdk-server.ts";
import { serveSdkV03 } from "./sdk-v03-server.ts";

/** What the official SDK 1.3.0 does otherwise than the specification asks: everywhere in 1.0, and by interface. */
const EVERYWHERE = ["CORE-ERR-002", "CORE-LIST-007", "CORE-SEND-003", "DM-PART-002", "DM-PARTS-001", "VER-CLIENT-002"];
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  "JSONRPC 1.0": [...EVERYWHERE, "CORE-LIST-006", "JSONRPC-ERR-001"],
  "HTTP+JSON 1.0": EVERYWHERE,
  "GRPC 1.0": [...EVERYWHERE, "CORE-LIST-006"],
  "JSONRPC 0.3": ["JSONRPC-ERR-001"],
  "HTTP+JSON 0.3": ["CORE-ERR-002"],
  "GRPC 0.3": ["CORE-ERR-002"],
};

/** The same of its last version for 0.3. */
const KNOWN_OF_V03: Readonly<Record<string, readonly string[]>> = {
  "JSONRPC 0.3": ["CORE-ERR-002", "JSONRPC-ERR-001"],
  "HTTP+JSON 0.3": ["CORE-ERR-002", "STREAM-SUB-004"],
  "GRPC 0.3": ["CORE-ERR-002"],
};

for (const level of ["log", "warn", "error", "info"] as const) vi.spyOn(console, level).mockImplementation(() => {});
async function examine(url: string): Promise<Report> {
  const how = { codecs: MESSAGE_CODECS, webhookHost: "127.0.0.1", patienceMs: 5_000 };
  return runConformance({ ...(await readCard(url)), ...how });
}

const report = await examine(await serveSdk(250));
const reportOfV03 = await examine(await serveSdkV03(250));
const COMPARED = JSON.parse(readFileSync(new URL("compared.json", import.meta.url), "utf8")) as Comparison;

/** Ids of requirements of level MUST that fail over one interface, with the reasons as a message. */
function failuresOf({ groups }: Report, name: string) {
  const group = groups.find(
    ({ subject }) => subject.kind === "interface" && `${subject.binding} ${subject.version}` === name,
  );
  const failed = group?.requirements.filter(({ level, status }) => level === "MUST" && status === "failed") ?? [];
  const reasons = failed.map(({ checks, id }) => `${id} ${checks.map(({ reason }) => reason).join(" ")}`);
  return { ids: failed.map(({ id }) => id).sort(), reasons: reasons.join("\n"), passed: group?.tally.MUST.passed ?? 0 };
}

describe("the official SDK", () => {
  it.each(Object.entries(KNOWN))("falls short over %s only where that is known", (name, known) => {
    const { ids, passed, reasons } = failuresOf(report, name);
    expect(ids, reasons).toEqual([...known].sort());
    expect(passed).toBeGreaterThan(30);
  });

  it("has a right card and means the same in every binding", () => {
    const others = report.groups.filter(({ subject }) => subject.kind !== "interface");
    expect(others.map(({ tally }) => tally.MUST.failed)).toEqual([0, 0, 0, 0]);
  });

  it("calls webhooks as it should", () => {
    const shown = report.groups.flatMap(({ requirements }) =>
      requirements
        .filter(({ id, status }) => id.startsWith("PUSH-DELIVER-00") && status === "passed")
        .map(({ id }) => id),
    );
    expect(new Set(shown)).toEqual(
      new Set(["PUSH-DELIVER-001", "PUSH-DELIVER-002", "PUSH-DELIVER-003", "PUSH-DELIVER-004"]),
    );
  });

  it.each(Object.entries(KNOWN_OF_V03))("of 0.3 falls short over %s only where that is known", (name, known) => {
    const { ids, passed, reasons } = failuresOf(reportOfV03, name);
    expect(ids, reasons).toEqual([...known].sort());
    expect(passed).toBeGreaterThan(30);
  });

  it.each([
    ["@a2a-js/sdk 1.3.0", KNOWN],
    ["@a2a-js/sdk 0.3.14", KNOWN_OF_V03],
  ])("is compared with others in the documentation as it is here: %s", (name, known) => {
    const row = COMPARED.servers.find(({ server }) => server === name);
    const failed = (subject: string) =>
      row?.failures.flatMap(({ id, level, where }) => (level === "MUST" && where.includes(subject) ? [id] : [])).sort();
    for (const [subject, ids] of Object.entries(known)) expect(failed(subject), subject).toEqual([...ids].sort());
  });
});
