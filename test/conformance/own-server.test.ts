import { describe, expect, it } from "vitest";
import { MESSAGE_CODECS } from "../../src/features/conformance/cli/conformance.ts";
import {
  type ConformanceOptions,
  type Report,
  renderText,
  runConformance,
  type Status,
} from "../../src/features/conformance/index.ts";
import { createTckAgent, type TckOptions } from "../../src/features/writers/tck.ts";
import type { ServeOptions } from "../../src/index.ts";
import { startServer } from "../support/lifecycle.ts";
import { byBearer, readCard } from "./report-helpers.ts";

const INTERFACES = ["JSONRPC 1.0", "HTTP+JSON 1.0", "GRPC 1.0", "JSONRPC 0.3", "HTTP+JSON 0.3", "GRPC 0.3"];

async function reportOf(
  agent: TckOptions,
  serving: Partial<ServeOptions> = {},
  options: Partial<ConformanceOptions> = {},
): Promise<Report> {
  const agents = { tck: createTckAgent({ streamingTimeoutMs: 250, ...agent }) };
  const { url } = await startServer({ agents, ...serving });
  return runConformance({ ...(await readCard(url)), codecs: MESSAGE_CODECS, patienceMs: 5_000, ...options });
}

/** Ids of requirements with that outcome, each with where it was had. */
function withStatus(report: Report, wanted: Status): string[] {
  return report.groups.flatMap(({ requirements, subject }) =>
    requirements
      .filter(({ level, status }) => level === "MUST" && status === wanted)
      .map(({ id }) => (subject.kind === "interface" ? `${id} over ${subject.binding} ${subject.version}` : id)),
  );
}

const idsOf = (rows: readonly string[]): string[] => [...new Set(rows.map((row) => row.split(" ")[0] ?? ""))].sort();

/** What the server cannot show to anyone. */
const NEVER_SHOWN = [
  // Cards are not signed.
  "CARD-SIGN-003",
  // The card requires no credentials.
  "AUTH-SERVER-002",
];

const OTHER_CALLERS = ["AUTH-SCOPE-002", "AUTH-SCOPE-003"];
const EXTENDED_CARD = ["CARD-EXT-001", "CARD-EXT-002"];

describe("this server", () => {
  it("does everything it must, over every interface", async () => {
    const report = await reportOf({}, {}, { webhookHost: "127.0.0.1" });
    expect(withStatus(report, "failed"), renderText(report)).toEqual([]);
    expect(report).toMatchObject({ complete: true, conformant: true, untested: [] });
    const interfaces = report.groups.flatMap(({ subject }) =>
      subject.kind === "interface" ? [`${subject.binding} ${subject.version}`] : [],
    );
    expect(interfaces).toEqual(INTERFACES);
    const optional = ["CORE-CAP-001", "CORE-CAP-002", "CORE-CAP-004", "TENANT-001"];
    expect(idsOf(withStatus(report, "not-shown"))).toEqual(
      [...NEVER_SHOWN, ...OTHER_CALLERS, ...EXTENDED_CARD, ...optional].sort(),
    );
    expect(report.tally.MUST.passed).toBeGreaterThan(300);
  });

  it("does so for an agent that does not stream", async () => {
    const report = await reportOf({ streaming: false });
    expect(withStatus(report, "failed"), renderText(report)).toEqual([]);
    expect(withStatus(report, "passed").filter((row) => row.startsWith("CORE-CAP-002"))).toHaveLength(6);
  });

  it("does so without push notifications", async () => {
    const report = await reportOf({}, { push: false });
    expect(withStatus(report, "failed"), renderText(report)).toEqual([]);
    expect(withStatus(report, "passed").filter((row) => row.startsWith("CORE-CAP-001"))).toHaveLength(6);
    expect(report.conformant).toBe(true);
  });

  it("does so for an agent that requires an extension", async () => {
    const report = await reportOf({ requiredExtension: "urn:a2a:tck:required-extension" });
    expect(withStatus(report, "failed"), renderText(report)).toEqual([]);
    expect(withStatus(report, "passed").filter((row) => row.startsWith("CORE-CAP-004"))).toHaveLength(3);
  });

  it("does so for callers it knows", async () => {
    const report = await reportOf(
      {},
      { authenticate: byBearer },
      { headers: { Authorization: "Bearer alice" }, otherHeaders: { Authorization: "Bearer bob" } },
    );
    expect(withStatus(report, "failed"), renderText(report)).toEqual([]);
    const shown = idsOf(withStatus(report, "passed"));
    for (const id of [...OTHER_CALLERS, ...EXTENDED_CARD]) expect(shown).toContain(id);
    expect(JSON.stringify(report)).not.toMatch(/alice|bob/);
  });

  it("does so for another agent than the first", async () => {
    const create = () => createTckAgent({ streamingTimeoutMs: 250 });
    const { url } = await startServer({ agents: { first: create(), second: create() } });
    const card = await readCard(`${url}/agents/second`);
    const report = await runConformance({ ...card, codecs: MESSAGE_CODECS, level: "MUST" });
    expect(withStatus(report, "failed"), renderText(report)).toEqual([]);
    expect(withStatus(report, "passed")).toContain("TENANT-001 over GRPC 1.0");
  });
});
