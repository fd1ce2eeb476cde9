import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { xiaoyiOf } from "../../../features/xiaoyi/server/config.ts";
import { YamlDocument } from "../../yaml/document.ts";
import { ConfigError } from "../../yaml/problems.ts";
import { type ConfigOverrides, loadConfig, parseConfig, readJson } from "./load.ts";

const folder = "/srv/project";
const parse = (text: string, environment: Record<string, string> = {}, overrides: ConfigOverrides = {}) =>
  parseConfig(text, { source: "dragoman.yaml", folder, environment, overrides });

function problemsOf(text: string, environment: Record<string, string> = {}, overrides: ConfigOverrides = {}): string[] {
  try {
    parse(text, environment, overrides);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n");
    throw error;
  }
  return [];
}

const ECHO = "agents: { echo: { use: echo } }\n";

describe("a configuration", () => {
  it("needs only an agent; the rest has defaults", () => {
    const { agents, findOrigins, ...config } = parse(ECHO);
    expect(config).toEqual({
      folder,
      server: {
        host: "127.0.0.1",
        port: 4000,
        grpcPort: undefined,
        publicUrl: undefined,
        grpcPublicUrl: undefined,
        path: "/",
        card: "hybrid",
        cors: { origins: [] },
        watchdogMs: 5_000,
        tls: undefined,
      },
      strict: false,
      store: `sqlite:${folder}/.dragoman/data.db`,
      default: "echo",
      sections: {
        cluster: {},
        xiaoyi: expect.objectContaining({ http: [], links: [] }),
        channels: [],
        registry: expect.objectContaining({ peers: [], registerWith: [], visibility: "private" }),
      },
      auth: { anonymous: false, apiKeys: [], basic: [] },
      limits: {
        body: 16 * 1_048_576,
        parts: 1_000,
        depth: 64,
        values: 200_000,
        arriving: 512 * 1024 * 1024,
        unsent: 512 * 1024 * 1024,
        unsentPerOwner: 128 * 1024 * 1024,
        historyPage: 200,
        page: 16 * 1_048_576,
        tasksPerOwner: 10_000,
        messageBytesPerOwner: 268_435_456,
        streamsPerOwner: 20_000,
        streamsPerAddress: 20_000,
        hops: 8,
        requestsPerAddress: 20_000,
        requestsPerOwner: 20_000,
        connections: 50_000,
        connectionsPerAddress: 30_000,
        resetsPerAddress: 50,
        headers: 16_384,
        headersTimeout: 20_000,
        requestTimeout: 300_000,
        id: 1_024,
        attempts: 5,
        part: 16_777_216,
        task: 268_435_456,
        failedLogins: 300,
        queue: 10_000,
        pushConfigs: 20,
      },
      push: {
        enabled: true,
        attempts: 12,
        timeoutMs: 10_000,
        hmac: undefined,
        jwt: undefined,
      },
      times: {
        leaseMs: 15_000,
        cancelGraceMs: 5_000,
        idempotencyMs: 86_400_000,
        compactAfterMs: 86_400_000,
        pruneAfterMs: undefined,
      },
      log: { level: "info", pretty: undefined },
    });
    expect([...agents]).toEqual([["echo", { kind: "use", source: { use: "echo" }, overrides: {} }]]);
    expect(findOrigins().get("agents.echo.use")).toEqual({ place: "dragoman.yaml:1:24", variables: [] });
  });

  it("reads every key", () => {
    const config = parse(`
server: { host: "::1", port: 8080, publicUrl: https://agents.example.com/, cors: { origins: ["*"] } }
store: sqlite:data/x.db
cluster: { name: east, lease: 6s, listenUrl: postgres://direct/tasks }
default: script
agents:
  weather: { module: ./agents/weather.ts, name: Weather, timeout: 1.5s }
  script:
    exec: [python3, agent.py]
    format: json
    cwd: scripts
    env: { MODE: fast }
    description: A script.
    skills: [{ id: s, name: S, description: Does s. }]
    concurrency: 2
    onCrash: resume
auth: { anonymous: true }
limits: { body: 1GiB, parts: 5 }
retention: { idempotency: 1h, compactAfter: 5m, pruneAfter: 7d }
cancelGrace: 500ms
log: { level: debug, pretty: true }
`);
    expect(config.server).toMatchObject({
      host: "::1",
      publicUrl: "https://agents.example.com",
      cors: { origins: ["*"] },
    });
    expect(config.store).toBe(`sqlite:${folder}/data/x.db`);
    expect(config.default).toBe("script");
    expect(config.agents.get("weather")).toEqual({
      kind: "module",
      source: { file: `${folder}/agents/weather.ts`, isolate: false },
      overrides: { name: "Weather", timeoutMs: 1_500 },
    });
    expect(config.agents.get("script")).toEqual({
      kind: "exec",
      source: {
        command: ["python3", "agent.py"],
        format: "json",
        cwd: `${folder}/scripts`,
        env: { MODE: "fast" },
        stderr: "log",
      },
      overrides: {
        description: "A script.",
        skills: [{ id: "s", name: "S", description: "Does s." }],
        concurrency: 2,
        onCrash: "resume",
      },
    });
    expect(config.limits).toMatchObject({ body: 1_073_741_824, parts: 5, depth: 64 });
    expect(config.sections.cluster).toEqual({ name: "east", listenUrl: "postgres://direct/tasks" });
    expect(config.times).toEqual({
      leaseMs: 6_000,
      cancelGraceMs: 500,
      idempotencyMs: 3_600_000,
      compactAfterMs: 300_000,
      pruneAfterMs: 604_800_000,
    });
    expect(config.log).toEqual({ level: "debug", pretty: true });
  });

  it("takes numbers and truth values from variables", () => {
    const text = `${ECHO}server: { host: 0.0.0.0, port: "\${PORT}" }\nauth: { anonymous: \${OPEN:-true} }\n`;
    const config = parse(text, { PORT: "5000" });
    expect(config.server.port).toBe(5000);
    expect(config.auth.anonymous).toBe(true);
    expect(config.findOrigins().get("server.port")).toEqual({ place: "dragoman.yaml:2:32", variables: ["PORT"] });
    expect(problemsOf(`${ECHO}server: { port: "5000" }`)).toEqual([
      "dragoman.yaml:2:17: server.port: must be a number, not text",
    ]);
  });

  it("takes variables where YAML alone would stumble over braces", () => {
    const text = `# not \${THIS}
agents:
  a: { exec: [run, \${FLAG}, \${LEVEL:-a: b}, "\${FLAG}/\${FLAG}", $\${FLAG], env: { KEY: \${KEY:-} }, timeout: 5s }
`;
    const config = parse(text, { FLAG: "--fast" });
    expect(config.agents.get("a")?.source).toMatchObject({
      command: ["run", "--fast", "a: b", "--fast/--fast", `$\{FLAG`],
      env: { KEY: "" },
    });
  });

  it("keeps what aliases stand for", () => {
    const config = parse("agents:\n  a: &a { use: echo, timeout: 5s }\n  b: *a\n");
    expect(config.agents.get("b")).toEqual(config.agents.get("a"));
  });

  it("lets the command line have the last word", () => {
    const config = parse(ECHO, {}, { port: 0, host: "localhost", store: "memory:", logLevel: "warn" });
    expect(config.server).toMatchObject({ port: 0, host: "localhost" });
    expect(config.store).toBe("memory:");
    expect(config.log.level).toBe("warn");
    expect(config.findOrigins().get("server.port")).toEqual({ place: "command line", variables: [] });
    expect(problemsOf(ECHO, {}, { host: "0.0.0.0" })).toEqual([
      expect.stringMatching(/^command line: server\.host: "0\.0\.0\.0" can be reached from other machines/),
    ]);
  });
});

describe("what is wrong with a configuration", () => {
  it.each([
    [`${ECHO}serverr: {}`, 'dragoman.yaml:2:1: serverr: unknown key; did you mean "server"?'],
    [`${ECHO}server: { prot: 1 }`, 'dragoman.yaml:2:11: server.prot: unknown key; did you mean "port"?'],
    [`${ECHO}wholly: 1`, /^dragoman.yaml:2:1: wholly: unknown key; known here are server, store, default, agents/],
    [
      "agents: { a: { use: ecko } }",
      'dragoman.yaml:1:21: agents.a.use: must be one of echo, outline, document, summary, tck; did you mean "echo"?',
    ],
    [
      "agents: { a: { skils: [], use: echo } }",
      'dragoman.yaml:1:16: agents.a.skils: unknown key; did you mean "skills"?',
    ],
    [
      "agents: { a: { use: echo, skills: [{ id: x, name: y, description: z, tag: [] }] } }",
      /agents\.a\.skills\[0\]\.tag: unknown key; did you mean "tags"\?/,
    ],
    [
      "agents: { 'a b': { use: echo } }",
      "dragoman.yaml:1:11: agents.a b: must be letters, digits, dots, dashes and underscores",
    ],
    [
      "agents: { a: { concurrency: 1, workflow: { steps: { b: { agent: a } } } } }",
      "dragoman.yaml:1:53: steps.b.agent: the workflow calls itself, and with concurrency: 1 would wait for itself for ever",
    ],
    ["agents: { a: {} }", "dragoman.yaml:1:14: agents.a: needs one of use, module, exec, link, remote, workflow, llm"],
    [
      "agents: { a: { use: echo, module: x.ts } }",
      "dragoman.yaml:1:14: agents.a: has use and module; an agent is only one of them",
    ],
    ["agents: { a: { use: echo, cwd: x } }", "dragoman.yaml:1:32: agents.a.cwd: has a meaning only beside exec"],
    [
      "agents: { a: { exec: [x], isolate: true } }",
      "dragoman.yaml:1:36: agents.a.isolate: has a meaning only beside module",
    ],
    [
      "agents: { a: { use: echo } }\nserver: { watchdog: 500ms }",
      "dragoman.yaml:2:21: server.watchdog: must be a duration of at least 1s, or false",
    ],
    [
      "agents: { a: { use: echo, streaming: false } }",
      "dragoman.yaml:1:38: agents.a.streaming: has a meaning only beside remote or use: tck",
    ],
    [
      "agents: { a: { use: tck, requiredExtension: none } }",
      "dragoman.yaml:1:45: agents.a.requiredExtension: must be a URI",
    ],
    ["agents: { a: { exec: [] } }", "dragoman.yaml:1:22: agents.a.exec: must name a program"],
    ["agents: { a: { exec: python3 } }", "dragoman.yaml:1:22: agents.a.exec: must be a list, not text"],
    [
      "agents: { a: { use: echo, timeout: 60 } }",
      "dragoman.yaml:1:36: agents.a.timeout: must be a duration such as 500ms, 60s, 5m, 1h or 7d",
    ],
    [
      "agents: { a: { use: echo, timeout: 30d } }",
      "dragoman.yaml:1:36: agents.a.timeout: must be shorter than 25 days",
    ],
    ["agents: { a: { use: echo, concurrency: 0 } }", "dragoman.yaml:1:40: agents.a.concurrency: must be 1 or more"],
    ["agents: {}", "dragoman.yaml:1:9: agents: needs at least one agent"],
    ["", "dragoman.yaml:1:1: agents: is required"],
    ["agents:", "dragoman.yaml:1:8: agents: must be a map of keys, not nothing"],
    [`${ECHO}default: ecko`, 'dragoman.yaml:2:10: default: there is no agent "ecko"; did you mean "echo"?'],
    [`${ECHO}server: { port: 70000 }`, "dragoman.yaml:2:17: server.port: must be 65535 or less"],
    [`${ECHO}server: { port: 1.5 }`, "dragoman.yaml:2:17: server.port: must be a whole number, not 1.5"],
    [`${ECHO}server: { publicUrl: "ftp://x" }`, /server\.publicUrl: must be an http or https address/],
    [`${ECHO}server: { publicUrl: "https://a:b@x" }`, /server\.publicUrl: must be an http or https address/],
    [`${ECHO}server: { host: 192.168.1.1 }`, /^dragoman.yaml:2:17: server\.host: "192\.168\.1\.1" can be reached/],
    [
      `${ECHO}server: { publicUrl: "https://agents.example.com" }`,
      /^dragoman.yaml:2:22: server\.publicUrl: "agents\.example\.com" can be reached/,
    ],
    [`${ECHO}limits: { body: 16 }`, "dragoman.yaml:2:17: limits.body: must be a size such as 512KiB, 16MiB or 1GiB"],
    [
      `${ECHO}store: mysql://x`,
      'dragoman.yaml:2:8: store: must be "memory:", "sqlite:<file>" or "postgres://user@host/database"',
    ],
    [`${ECHO}cluster: { lease: 500ms }`, "dragoman.yaml:2:19: cluster.lease: must be at least 1s"],
    [
      `${ECHO}cluster: { listenUrl: "https://x" }`,
      'dragoman.yaml:2:23: cluster.listenUrl: must be "postgres://user@host/database"',
    ],
    ["- a", "dragoman.yaml:1:1: must be a map of keys, not a list"],
    [`${ECHO}${ECHO}`, /^dragoman.yaml:2:1: Map keys must be unique/],
    [`${ECHO}server: { port: 1, port: 2 }`, "dragoman.yaml:2:20: Map keys must be unique"],
    ["agents:\n  echo: { use: echo }\n  echo: { use: echo }", "dragoman.yaml:3:3: Map keys must be unique"],
    ["agents: { a: [", /^dragoman.yaml:1:\d+: /],
  ])("%s", (text, problem) => {
    expect(problemsOf(text)).toEqual([typeof problem === "string" ? problem : expect.stringMatching(problem)]);
  });

  it("reads how push notifications are delivered", () => {
    const key = "jwt: { keyFile: keys/push.pem, kid: k1, alg: ES256 }";
    const { push, limits } = parse(`${ECHO}push: { timeout: 2s, attempts: 3, ${key} }\nlimits: { pushConfigs: 4 }`);
    expect(push).toEqual({
      enabled: true,
      attempts: 3,
      timeoutMs: 2_000,
      hmac: undefined,
      jwt: { keyFile: `${folder}/keys/push.pem`, kid: "k1", alg: "ES256" },
    });
    expect(limits.pushConfigs).toBe(4);
  });

  it("reads what files may come with messages", () => {
    const { limits } = parse(`${ECHO}limits: { file: 1MiB, mediaTypes: [Application/PDF, image/*] }`);
    expect(limits).toMatchObject({ file: 1_048_576, mediaTypes: ["application/pdf", "image/*"] });
    expect(parse(ECHO).limits).not.toHaveProperty("file");
  });

  it.each([
    ["limits: { mediaTypes: [pdf] }", "limits.mediaTypes[0]: must be a media type such as application/pdf"],
    ["limits: { mediaTypes: [] }", "limits.mediaTypes"],
    ["limits: { file: 0MiB }", "limits.file: must be a size"],
    ["push: { hmac: { secret: short } }", "push.hmac.secret: must have at least 16 characters"],
    ["push: { timeout: 0s }", "push.timeout: must be longer than nothing"],
    ["push: { jwt: { keyFile: k.pem, kid: k, alg: HS256 } }", "push.jwt.alg"],
    ["push: { allowPrivateTarget: true }", "allowPrivateTargets"],
  ])("refuses %s", (line, message) => {
    expect(problemsOf(`${ECHO}${line}`)).toEqual([expect.stringContaining(message)]);
  });

  it("reads how agents are connected to Xiaoyi", () => {
    const xiaoyi = xiaoyiOf(parse(`${ECHO}xiaoyi: { http: [{ agent: echo, ak: a, sk: s, sessionTtl: 1h }] }`));
    const entry = { agent: "echo", ak: "a", sk: "s", render: "phone", language: "zh", sessionTtlMs: 3_600_000 };
    expect(xiaoyi.http).toEqual([entry]);
  });

  it("reads which agents dial in", () => {
    const { agents } = parse("agents: { a: { link: { agentId: i, ak: a, sk: s }, timeout: 1m } }");
    expect(agents.get("a")).toEqual({
      kind: "link",
      source: { agentId: "i", ak: "a", sk: "s" },
      overrides: { timeoutMs: 60_000 },
    });
    const link = "link: { agentId: i, ak: a, sk: s }";
    expect(problemsOf(`agents: { a: { ${link} }, b: { ${link} } }`)).toEqual([
      'dragoman.yaml:1:76: agents.b.link.agentId: "a" dials in with this id, too',
    ]);
    expect(problemsOf("agents: { a: { link: { agentId: i, ak: a } } }")).toEqual([
      "dragoman.yaml:1:22: agents.a.link.sk: is required",
    ]);
    const { agents: keyed } = parse("agents: { a: { link: { agentId: i, uid: u, apiKey: k, patience: 2m } } }");
    expect(keyed.get("a")?.source).toEqual({ agentId: "i", uid: "u", apiKey: "k", patienceMs: 120_000 });
    expect(problemsOf("agents: { a: { link: { agentId: i, ak: a, sk: s, uid: u } } }")).toEqual([
      "dragoman.yaml:1:22: agents.a.link.apiKey: is required",
    ]);
    expect(problemsOf("agents: { a: { link: { agentId: i, patience: 0s } } }")).toEqual([
      "dragoman.yaml:1:22: agents.a.link: needs ak and sk, or uid and apiKey",
      "dragoman.yaml:1:46: agents.a.link.patience: must be longer than nothing",
    ]);
    expect(problemsOf(`agents: { a: { ${link}, use: echo } }`)).toEqual([
      "dragoman.yaml:1:14: agents.a: has use and link; an agent is only one of them",
    ]);
  });

  it("reads which agents dial Xiaoyi", () => {
    const backup = "backup: { url: 'wss://192.0.2.1/x', servername: hag.example.com }";
    const xiaoyi = xiaoyiOf(parse(`${ECHO}xiaoyi: { links: [{ agent: echo, agentId: i, ak: a, sk: s, ${backup} }] }`));
    expect(xiaoyi.links).toEqual([
      {
        agent: "echo",
        agentId: "i",
        ak: "a",
        sk: "s",
        url: "wss://hag.cloud.huawei.com/openclaw/v1/ws/link",
        backup: { url: "wss://192.0.2.1/x", servername: "hag.example.com" },
        render: "phone",
        language: "zh",
        heartbeatMs: 20_000,
        reconnect: { baseMs: 2_000, capMs: 60_000, maxTries: 50, resetAfterMs: 10_000 },
        uploadUrl: "https://hag-drcn.op.dbankcloud.com",
      },
    ]);
    const local = "agent: echo, agentId: i, ak: a, sk: s, url: 'ws://[::1]:8080/x', heartbeat: 5s";
    expect(xiaoyiOf(parse(`${ECHO}xiaoyi: { links: [{ ${local} }] }`)).links).toMatchObject([{ heartbeatMs: 5_000 }]);
  });

  it.each([
    ["agent: ech", 'xiaoyi.links[0].agent: there is no agent "ech"; did you mean "echo"?'],
    ["agent: echo, url: 'ws://example.com/x'", "xiaoyi.links[0].url: must be a wss address, or ws on this machine"],
    ["agent: echo, url: 'https://example.com/x'", "xiaoyi.links[0].url: must be a wss address, or ws on this machine"],
    ["agent: echo, uid: u", "xiaoyi.links[0]: needs both of uid and apiKey, or neither"],
    ["agent: echo, heartbeat: 0s", "xiaoyi.links[0].heartbeat: must be 1s to 10m"],
    ["agent: echo, backup: { url: 'wss://x/', fingerprint: abc }", "backup.fingerprint: must be a SHA-256 fingerprint"],
    [
      "agent: echo, backup: { url: 'wss://x/', servername: y, insecure: true }",
      "xiaoyi.links[0].backup: has servername and insecure; one of them decides",
    ],
  ])("refuses a link {%s} of Xiaoyi", (entry, message) => {
    const link = `agentId: i, ak: a, sk: s, ${entry}`;
    expect(problemsOf(`${ECHO}xiaoyi: { links: [{ ${link} }] }`)).toEqual([expect.stringContaining(message)]);
  });

  it.each([
    ["agent: ech, apiKey: k", 'xiaoyi.http[0].agent: there is no agent "ech"; did you mean "echo"?'],
    ["agent: echo", "xiaoyi.http[0]: needs ak with sk, apiKey, or oauth"],
    ["agent: echo, ak: a, apiKey: k", "xiaoyi.http[0]: needs both of ak and sk, or neither"],
    ["agent: echo, ak: a, sk: s, apiKey: k", "xiaoyi.http[0]: has sk and apiKey; the platform uses one of them"],
    ["agent: echo, ak: a, sk: s, header: X-Key", "xiaoyi.http[0].header: has a meaning only beside apiKey"],
    ["agent: echo, apiKey: k, header: 'a b'", "xiaoyi.http[0].header: must be the name of a header"],
    ["agent: echo, apiKey: ''", "xiaoyi.http[0].apiKey: must not be empty"],
    ["agent: echo, apiKey: k, render: tv", "xiaoyi.http[0].render"],
    [`agent: echo, ak: a, sk: ${"s".repeat(65)}`, "xiaoyi.http[0].sk: must not have more than 64 characters"],
    [
      "agent: echo, apiKey: k, account: { tokenUrl: 'file:///x', clientId: c, clientSecret: s }",
      "tokenUrl: must be an",
    ],
  ])("refuses {%s} of Xiaoyi", (entry, message) => {
    expect(problemsOf(`${ECHO}xiaoyi: { http: [{ ${entry} }] }`)).toEqual([expect.stringContaining(message)]);
  });

  it("says that telemetry is not available in this version", () => {
    const message = "telemetry: not available in this version";
    expect(problemsOf(`${ECHO}telemetry: {}`)).toEqual([expect.stringContaining(message)]);
  });

  it.each([
    ["registry: true", "registry: must be false or the settings of the registry"],
    ["registry: { peer: [] }", 'registry.peer: unknown key; did you mean "peers"?'],
    ["registry: { peers: [ftp://a] }", "registry.peers[0]: must be an http or https address"],
    ["registry: { refresh: often }", "registry.refresh: must be a duration"],
    ["registry: { visibility: all }", "registry.visibility: must be one of private, public"],
    ["registry: { agents: 0 }", "registry.agents: must be 1 or more"],
  ])("refuses %s", (line, message) => {
    expect(problemsOf(`${ECHO}${line}`)).toEqual([expect.stringContaining(message)]);
  });

  it("is told all at once, in the order of the file", () => {
    const problems = problemsOf(`server: { port: x, hots: y }
default: nobody
agents:
  a: { use: echo, timeout: \${LIMIT} }
  b: { use: echo, exec: [x] }
`);
    expect(problems.map((problem) => problem.split(": ").slice(0, 2).join(" "))).toEqual([
      "dragoman.yaml:1:17 server.port",
      "dragoman.yaml:1:20 server.hots",
      "dragoman.yaml:2:10 default",
      "dragoman.yaml:4:28 agents.a.timeout",
      "dragoman.yaml:5:6 agents.b",
    ]);
  });

  it("names missing variables and unreadable expressions where they stand", () => {
    expect(problemsOf(`agents:\n  a: { exec: [run, "--key=\${KEY}", '\${2}'] }\n`)).toEqual([
      `dragoman.yaml:2:27: agents.a.exec[1]: the environment variable KEY is not set; set it, or write \${KEY:-default}`,
      `dragoman.yaml:2:37: agents.a.exec[2]: cannot read this; write \${NAME} or \${NAME:-default}, or $\${ for a plain \${`,
    ]);
  });

  it("never shows what a variable held", () => {
    const [problem] = problemsOf(`${ECHO}server: { port: "\${TOKEN}" }`, { TOKEN: "s3cret" });
    expect(problem).toBe("dragoman.yaml:2:17: server.port: must be a number, not text");
  });
});

describe("a configuration with everything", () => {
  const text = `
server: { host: 127.0.0.1, port: 4000, publicUrl: https://agents.example.com }
store: sqlite:.dragoman/data.db            # "memory:" | sqlite:<file>
default: article
agents:
  echo:     { use: echo }
  article:  { workflow: workflows/article.yaml }
  weather:  { module: ./agents/weather.ts }
  script:   { exec: [python3, agent.py] }
  helper:   { llm: { baseUrl: http://localhost:11434/v1, model: qwen3, apiKey: \${LLM_KEY:-}, system: Be brief. } }
  partner:  { remote: https://partner.example.com }
auth:
  apiKeys: [{ key: \${ALICE_KEY}, owner: alice }]
channels:
  - telegram: { token: \${TELEGRAM_TOKEN} }
    agent: helper
registry: { peers: [] }
`;

  it("is valid", () => {
    expect(problemsOf(text, { ALICE_KEY: "a", TELEGRAM_TOKEN: "1:t" })).toEqual([]);
  });
});

describe("a configuration in JSON", () => {
  it("has the values that it has as YAML", () => {
    const json = fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue());
    const indents = fc.constantFrom(undefined, 2, "\t");
    fc.assert(
      fc.property(json, indents, (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        fc.pre(!text.includes("${"));
        const read = readJson(text);
        expect(read).toEqual(JSON.parse(text));
        expect(read).toEqual(new YamlDocument(text, "a.json", {}).values);
      }),
    );
  });

  it("names the places of problems, repeated keys included", () => {
    expect(problemsOf('{\n  "agents": {\n    "a": { "use": "echo" },\n    "a": { "use": "echo" }\n  }\n}')).toEqual([
      "dragoman.yaml:4:5: Map keys must be unique",
    ]);
    expect(problemsOf('{\n  "agents": { "a": { "use": "echo" } },\n  "server": { "port": "x" }\n}')).toEqual([
      "dragoman.yaml:3:23: server.port: must be a number, not text",
    ]);
  });

  it("may use variables, and tells where values come from", () => {
    const text = '{ "agents": { "a": { "use": "echo" } }, "server": { "port": "${PORT}", "host": "::1" } }';
    const config = parse(text, { PORT: "80" });
    expect(config.server.port).toBe(80);
    expect(parse(text.replace("${PORT}", "80").replace('"80"', "80")).findOrigins().get("server.host")).toEqual({
      place: "dragoman.yaml:1:73",
      variables: [],
    });
  });
});

describe("loadConfig", () => {
  it("resolves paths against the folder of the file", async () => {
    const here = await mkdtemp(join(tmpdir(), "dragoman-config-"));
    try {
      await writeFile(join(here, "dragoman.yaml"), "agents: { a: { module: ./a.ts } }\n");
      const config = await loadConfig(join(here, "dragoman.yaml"), {});
      expect(config.folder).toBe(here);
      expect(config.agents.get("a")?.source).toEqual({ file: join(here, "a.ts"), isolate: false });
      await expect(loadConfig(join(here, "none.yaml"), {})).rejects.toThrow(/none\.yaml: file not found/);
      await expect(loadConfig(here, {})).rejects.toThrow(/is a folder, not a file/);
    } finally {
      await rm(here, { recursive: true });
    }
  });
});

describe("llm", () => {
  const LLM = "baseUrl: http://localhost:11434/v1, model: qwen3";
  const sourceOf = (agents: string) =>
    parseConfig(`agents: { ${agents} }`, { source: "dragoman.yaml", folder: "/", environment: {} }).agents.get("a")
      ?.source;

  it("has defaults, and no key if it is empty", () => {
    expect(sourceOf(`a: { llm: { ${LLM}, apiKey: "\${LLM_KEY:-}" } }`)).toEqual({
      llm: {
        baseUrl: "http://localhost:11434/v1",
        model: "qwen3",
        agents: [],
        maxToolCalls: 16,
        maxContextTokens: 8_000,
        images: false,
        attempts: 4,
        idleTimeoutMs: 120_000,
        body: {},
      },
    });
  });

  it("belongs to a writer beside use", () => {
    expect(sourceOf(`a: { use: outline, llm: { ${LLM} } }`)).toMatchObject({ use: "outline" });
  });

  it.each([
    [`a: { llm: {} }`, ["agents.a.llm.baseUrl: is required", "agents.a.llm.model: is required"]],
    [`a: { llm: { baseUrl: "ftp://x", model: m } }`, ["agents.a.llm.baseUrl: must be an http or https address"]],
    [
      `a: { llm: { baseUrl: "http://u:p@x/v1", model: m } }`,
      ["agents.a.llm.baseUrl: must be an http or https address"],
    ],
    [`a: { llm: { ${LLM}, modle: m } }`, ['agents.a.llm.modle: unknown key; did you mean "model"?']],
    [`a: { llm: { ${LLM}, agents: [b] } }`, ['agents.a.llm.agents[0]: there is no agent "b"']],
    [`a: { llm: { ${LLM}, agents: [a] } }`, ["agents.a.llm.agents[0]: an agent cannot call itself"]],
    [`a: { llm: { ${LLM}, maxTokens: 0 } }`, ["agents.a.llm.maxTokens: must be 1 or more"]],
    [`a: { llm: { ${LLM}, idleTimeout: 10m } }`, ["agents.a.llm.idleTimeout: must not be longer than 5m"]],
    [`a: { use: echo, llm: { ${LLM} } }`, ["agents.a: has use and llm; an agent is only one of them"]],
    [`a: { use: outline, llm: { ${LLM}, agents: [a] } }`, ["agents.a.llm.agents: has no meaning beside use: outline"]],
  ])("%s is refused", (agents, problems) => {
    expect(problemsOf(`agents: { ${agents} }`)).toEqual(problems.map((problem) => expect.stringContaining(problem)));
  });
});
