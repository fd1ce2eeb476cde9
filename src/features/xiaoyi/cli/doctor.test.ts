import { chmod, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkSecurity } from "../../../core/cli/doctor/security.ts";
import { systemClock } from "../../../core/server/clock-and-ids.ts";
import { parseConfig } from "../../../core/server/config/load.ts";
import { xiaoyiOf } from "../server/config.ts";
import { createSimulator, type Simulator, seededRandom } from "../simulator/index.ts";
import { checkLinks, checkXiaoyi } from "./doctor.ts";

const NOW = Date.UTC(2026, 4, 6, 7, 8, 9);
const STRONG = "Zk3vQ8rT1yLw6XnB0sHdPq";
const environment = { AK: "access", SK: STRONG, OTHER: "W2eRtY9uIoP7aSdF4gHjKl" };

const KEYS = 'ak: "${AK}", sk: "${SK}"';
const HTTP = `agent: echo, ${KEYS}`;
const LINK = `agent: echo, agentId: one, ${KEYS}`;
const PUBLIC = "{ publicUrl: 'https://agents.example.com' }";

interface Written {
  readonly server?: string;
  readonly xiaoyi: string;
  readonly agents?: string;
}

function configOf({ agents = "", server = PUBLIC, xiaoyi }: Written) {
  const who = "auth: { apiKeys: [{ key: '${OTHER}', owner: alice }] }";
  const text = `server: ${server}\n${who}\nagents: { echo: { use: echo }${agents} }\nxiaoyi: { ${xiaoyi} }`;
  const config = parseConfig(text, { source: "dragoman.yaml", folder: "/srv", environment, overrides: {} });
  return { ...config, xiaoyi: xiaoyiOf(config) };
}

/** Without the line about the clock. */
function found(written: Written): readonly string[] {
  const checks = checkXiaoyi(configOf(written), NOW).filter(({ name }) => name !== "xiaoyi clock");
  return checks.map(({ name, status }) => `${status} ${name}`);
}

describe("doctor on Xiaoyi", () => {
  it("reports nothing where it is not configured", () => {
    expect(checkXiaoyi(configOf({ xiaoyi: "" }), NOW)).toEqual([]);
  });

  it("finds nothing wrong with what is safe, and says by which clock requests are signed", () => {
    const backup = `backup: { url: 'wss://192.0.2.1/link', fingerprint: '${"ab".repeat(32)}' }`;
    const xiaoyi = `http: [{ ${HTTP} }, { agent: echo, apiKey: "\${OTHER}" }], links: [{ ${LINK}, ${backup} }]`;
    const agents = `, far: { link: { agentId: far, ${KEYS} } }`;
    expect(checkXiaoyi(configOf({ xiaoyi, agents }), NOW)).toEqual([
      { name: "xiaoyi clock", status: "ok", detail: expect.stringContaining("2026-05-06T07:08:09.000Z") },
    ]);
  });

  it.each<[string, Written, readonly string[]]>([
    [
      "any certificate",
      { xiaoyi: `links: [{ ${LINK}, backup: { url: 'wss://192.0.2.1/link', insecure: true } }]` },
      ["failed xiaoyi.links[0].backup.insecure"],
    ],
    [
      "an address without a pin",
      { xiaoyi: `links: [{ ${LINK}, backup: { url: 'wss://192.0.2.1/link' } }]` },
      ["warning xiaoyi.links[0].backup.url"],
    ],
    [
      "keys that are written out",
      { xiaoyi: `links: [{ agent: echo, agentId: one, ak: access, sk: ${STRONG} }]` },
      ["warning xiaoyi.links[0].ak", "warning xiaoyi.links[0].sk"],
    ],
    [
      "keys of a push and of uploads that are written out",
      { xiaoyi: `http: [{ ${HTTP}, push: { apiId: x, ak: a, sk: b }, upload: { uid: u, apiKey: k } }]` },
      ["warning xiaoyi.http[0].push.ak", "warning xiaoyi.http[0].push.sk", "warning xiaoyi.http[0].upload.apiKey"],
    ],
    [
      "a secret that seals sessions and can be guessed",
      { xiaoyi: 'http: [{ agent: echo, ak: "${AK}", sk: "${AK}" }]' },
      ["failed xiaoyi.http[0].sk"],
    ],
    [
      "the same where only this machine is asked",
      { server: "{}", xiaoyi: 'http: [{ agent: echo, apiKey: "${AK}" }]' },
      ["warning xiaoyi.http", "warning xiaoyi.http[0].apiKey"],
    ],
    [
      "a client secret that can be guessed",
      { xiaoyi: 'http: [{ agent: echo, oauth: { clientId: c, clientSecret: "${AK}" } }]' },
      ["failed xiaoyi.http[0].oauth.clientSecret"],
    ],
    [
      "an agent that anyone could be",
      { xiaoyi: "", agents: ', far: { link: { agentId: far, ak: "${AK}", sk: "${AK}" } }' },
      ["failed agents.far.link.sk"],
    ],
    [
      "a key in addresses",
      { xiaoyi: 'http: [{ agent: echo, apiKey: "${OTHER}", query: key }]' },
      ["warning xiaoyi.http[0].query"],
    ],
    ["one caller twice", { xiaoyi: `http: [{ ${HTTP} }, { ${HTTP}, owner: bob }]` }, ["warning xiaoyi.http[1]"]],
    ["two links of one agent", { xiaoyi: `links: [{ ${LINK} }, { ${LINK} }]` }, ["failed xiaoyi.links"]],
    [
      "one id at two servers",
      { xiaoyi: `links: [{ ${LINK} }, { ${LINK}, url: 'wss://other.example/' }]` },
      ["warning xiaoyi.links[1].agentId"],
    ],
    [
      "a port the platform does not reach",
      { server: "{ publicUrl: 'https://agents.example.com:8443' }", xiaoyi: `http: [{ ${HTTP} }]` },
      ["failed xiaoyi.http"],
    ],
    [
      "an address the platform does not call",
      { server: "{ publicUrl: 'http://agents.example.com' }", xiaoyi: `http: [{ ${HTTP} }]` },
      ["failed xiaoyi.http"],
    ],
    ["no address at all", { server: "{ host: 0.0.0.0 }", xiaoyi: `http: [{ ${HTTP} }]` }, ["warning xiaoyi.http"]],
    [
      "placeholders of a link",
      { xiaoyi: "links: [{ agent: echo, agentId: your-agent-id, ak: access-key, sk: <SK> }]" },
      [
        ...["agentId", "ak", "sk"].map((key) => `failed xiaoyi.links[0].${key}`),
        "warning xiaoyi.links[0].ak",
        "warning xiaoyi.links[0].sk",
      ],
    ],
    [
      "placeholders of callers and of an agent that dials in",
      {
        xiaoyi: "http: [{ agent: echo, ak: xxx, sk: your-sk }]",
        agents: ", far: { link: { agentId: AGENT_ID, ak: changeme, sk: '****' } }",
      },
      [
        ...["http[0].ak", "http[0].sk"].map((key) => `failed xiaoyi.${key}`),
        ...["agentId", "ak", "sk"].map((key) => `failed agents.far.link.${key}`),
        ...["agents.far.link.ak", "agents.far.link.sk", "xiaoyi.http[0].ak", "xiaoyi.http[0].sk"].map(
          (key) => `warning ${key}`,
        ),
      ],
    ],
    ["files from inside", { xiaoyi: "files: { allowHosts: [10.0.0.1] }" }, ["warning xiaoyi.files.allowHosts"]],
  ])("finds %s", (_, written, expected) => {
    expect(found(written)).toEqual(expected);
  });

  it("shows no secret", () => {
    const xiaoyi = `http: [{ agent: echo, ak: an-access-key, sk: a-planted-secret, push: { apiId: x } }]`;
    expect(JSON.stringify(checkXiaoyi(configOf({ xiaoyi }), NOW))).not.toContain("planted");
  });

  it("minds who may read a configuration that holds them", async () => {
    const xiaoyi = `links: [{ agent: echo, agentId: one, ak: "\${AK}", sk: ${STRONG} }]`;
    const file = join(await mkdtemp(join(tmpdir(), "dragoman-")), "dragoman.yaml");
    await writeFile(file, "");
    await chmod(file, 0o644);
    const seen = (written: string) => checkSecurity(configOf({ xiaoyi: written }), file);
    const about = "security: the configuration";
    expect((await seen(xiaoyi)).map(({ name }) => name)).toContain(about);
    expect((await seen(`links: [{ ${LINK} }]`)).map(({ name }) => name)).not.toContain(about);
  });
});

describe("doctor on links", () => {
  let simulator: Simulator;
  beforeAll(async () => {
    simulator = await createSimulator({ clock: systemClock, random: seededRandom(7) });
  });
  afterAll(() => simulator.close());

  function linkWith(more: { readonly sk?: string; readonly url?: string } = {}) {
    const { accessKey, agentId, secretKey } = simulator.agent;
    return { agent: "echo", agentId, ak: accessKey, sk: secretKey, url: simulator.linkUrls[0] as string, ...more };
  }

  it("does not dial by default", async () => {
    expect(await checkLinks([], true)).toEqual([]);
    expect(await checkLinks([linkWith()], false)).toMatchObject([{ name: "xiaoyi.links", status: "skipped" }]);
  });

  it("tells whether the platform accepts the keys", async () => {
    const [accepted, refused] = await checkLinks([linkWith(), linkWith({ sk: "not-the-planted-one" })], true);
    expect(accepted).toMatchObject({ name: "xiaoyi.links[0]", status: "ok" });
    expect(refused).toMatchObject({
      name: "xiaoyi.links[1]",
      status: "failed",
      detail: expect.stringContaining("401"),
    });
    expect(refused?.detail).not.toContain("planted");
  });

  it("does not call it a fault to be offline", async () => {
    const silent = await createSimulator({ clock: systemClock, random: seededRandom(8) });
    const url = silent.linkUrls[0] as string;
    await silent.close();
    expect(await checkLinks([linkWith({ url })], true)).toMatchObject([
      { status: "skipped", detail: expect.stringContaining("could not be reached") },
    ]);
  });
});
