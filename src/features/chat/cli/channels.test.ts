import { rmSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runInProcess } from "../../../core/cli/testing/run-in-process.ts";
import { parseConfig } from "../../../core/server/config/load.ts";
import { NETWORKS } from "../networks/networks.ts";
import { channelsOf } from "../server/config.ts";

const names = NETWORKS.map(({ name }) => name);
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "dragoman-channels-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function configure(channels: string): string {
  const file = join(folder, "dragoman.yaml");
  writeFileSync(file, `agents: { helper: { use: echo } }\nchannels:\n${channels}`);
  return file;
}

// A port of this machine on which nothing listens.
const CLOSED = "  - { irc: { host: 127.0.0.1, port: 1, nick: helper, channels: [agents] }, agent: helper }\n";

describe("channels list", () => {
  it("has every network, with what it can do, and what is configured", async () => {
    const { code, stdout } = await runInProcess("channels", "list", "--config", configure(CLOSED));
    expect(code).toBe(0);
    for (const name of names) expect(stdout).toMatch(new RegExp(`^${name} `, "m"));
    expect(stdout).toContain("channels[0]  irc  helper  #agents");
  });

  it("is JSON on request", async () => {
    const { stdout } = await runInProcess("channels", "list", "--config", configure(CLOSED), "-o", "json");
    const list = JSON.parse(stdout);
    expect(list.networks.map(({ name }: { name: string }) => name)).toEqual(names);
    expect(list.networks[0]).toMatchObject({ installed: true, install: null, abilities: expect.any(Object) });
    expect(list.configured).toEqual([{ entry: "channels[0]", network: "irc", agent: "helper", rooms: ["#agents"] }]);
  });
});

describe("channels show", () => {
  it.each(names)("%s has steps, and a configuration that is valid", async (name) => {
    const { code, stdout } = await runInProcess("channels", "show", name, "-o", "json");
    expect(code).toBe(0);
    const { config, setup } = JSON.parse(stdout);
    expect(setup.length).toBeGreaterThan(0);
    const variables = [...config.matchAll(/\$\{(\w+)\}/g)].map(([, variable]) => [variable, EXAMPLES[variable] ?? "x"]);
    const environment = Object.fromEntries(variables);
    const channels = channelsOf(parseConfig(config, { source: "shown", folder, environment }));
    expect(channels).toMatchObject([{ [name]: expect.any(Object), agent: "helper" }]);
    const text = await runInProcess("channels", "show", name);
    expect(text.stdout).toContain(`dragoman channels test ${name}`);
  });

  it("suggests the network that was meant", async () => {
    const { code, stderr } = await runInProcess("channels", "show", "discrd");
    expect(code).toBe(2);
    expect(stderr).toContain('There is no network "discrd".');
    expect(stderr).toContain("Did you mean discord?");
  });
});

/** Where a network checks the form of what comes from the environment. */
const EXAMPLES: Readonly<Record<string, string>> = { FEISHU_APP_ID: "cli_0123456789abcdef" };

describe("channels test", () => {
  it("says that nothing listens, and ends with 3", async () => {
    const { code, stdout } = await runInProcess("channels", "test", "irc", "--config", configure(CLOSED));
    expect(stdout).toMatch(/^channels\[0\]: helper on IRC\n {2}failed {3}connect: .*ECONNREFUSED/);
    expect(code).toBe(3);
  });

  it.each([
    ["mqtt", "has no channel on MQTT", "dragoman channels show mqtt"],
    ["7", "has 1 entry of channels", ""],
    ["ircc", 'There is no network "ircc".', "Did you mean irc?"],
  ])("does not know %s", async (name, message, hint) => {
    const { code, stderr } = await runInProcess("channels", "test", name, "--config", configure(CLOSED));
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).toContain(hint);
  });

  it("needs a configuration", async () => {
    const { code, stderr } = await runInProcess("channels", "test", "irc", "--config", join(folder, "none.yaml"));
    expect(code).toBe(1);
    expect(stderr).toContain("Configuration not found");
  });
});
