import { beforeAll, describe, expect, it, vi } from "vitest";

/** The core as it is without any feature: what is imported from here on has none installed. */
async function importCore() {
  vi.resetModules();
  const { parseConfig } = await import("../server/config/load.ts");
  const { checkServeOptions } = await import("../server/check-options.ts");
  const { openStore } = await import("../store/open.ts");
  const { SILENT_LOG } = await import("../model/ports.ts");
  const { runInProcess } = await import("../cli/testing/run-in-process.ts");
  const { systemClock } = await import("../server/clock-and-ids.ts");
  return { parseConfig, checkServeOptions, openStore, runInProcess, SILENT_LOG, systemClock };
}

describe("without features", () => {
  let core: Awaited<ReturnType<typeof importCore>>;
  beforeAll(async () => {
    core = await importCore();
  });

  it.each([
    ["xiaoyi: {}", "dragoman.yaml:1:1: xiaoyi: needs the extension xiaoyi"],
    ["channels: []", "dragoman.yaml:1:1: channels: needs the extension chat"],
    ["registry: false", "dragoman.yaml:1:1: registry: needs the extension registry"],
    ["cluster: {}", "dragoman.yaml:1:1: cluster: needs the extension cluster"],
    ["store: postgres://db/tasks", "dragoman.yaml:1:8: store: needs the extension cluster"],
  ])("%s is refused with the extension that it needs", (line, problem) => {
    expect(messageOf(() => core.parseConfig(`${line}\nagents: { a: { use: echo } }\n`, FILE))).toBe(problem);
  });

  it.each([
    ["link: {}", "link: needs the extension xiaoyi"],
    ["remote: https://a.example.com, binding: GRPC", "remote: needs the extension gateway"],
    ["workflow: w.yaml", "workflow: needs the extension workflow"],
    ["llm: {}", "llm: needs the extension llm"],
    ["use: outline", "use: needs the extension writers"],
    ["use: tck", "use: needs the extension writers"],
    ["use: echo, visibility: public", "visibility: needs the extension registry"],
  ])("an agent {%s} is refused with the extension that it needs", (agent, problem) => {
    expect(() => core.parseConfig(`agents: { a: { ${agent} } }\n`, FILE)).toThrow(`agents.a.${problem}`);
    expect(() => core.parseConfig(`agents: { a: { ${agent} } }\n`, FILE)).not.toThrow(/unknown|needs one of/);
  });

  it("so are options of serve", async () => {
    const options = { agents: {}, registry: false, store: "postgres://db/tasks" };
    const checked = core.checkServeOptions("serve", options as never);
    await expect(checked).rejects.toThrow("registry: needs the extension registry");
    await expect(checked).rejects.toThrow("store: needs the extension cluster");
  });

  it("so are stores, without their passwords", async () => {
    const around = { baseDirectory: ".", clock: core.systemClock, log: core.SILENT_LOG };
    await expect(core.openStore("postgres://me:secret@db/tasks", around)).rejects.toThrow(
      'The store "postgres://…@db/tasks" needs the extension cluster.',
    );
  });

  it.each([
    ["registry list", "The command registry needs the extension registry."],
    ["-o text conformance http://127.0.0.1:1", "The command conformance needs the extension conformance."],
    ["store copy --from memory:", "The command store copy needs the extension cluster."],
    ["registri", "unknown command 'registri'"],
  ])("`dragoman %s` is refused with the extension that it needs", async (line, message) => {
    const { code, stderr } = await core.runInProcess(...line.split(" "));
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });
});

const FILE = { source: "dragoman.yaml", folder: "/srv/project", environment: {}, overrides: {} };

function messageOf(action: () => unknown): string | undefined {
  try {
    action();
  } catch (error) {
    return (error as Error).message;
  }
  return undefined;
}
