import { describe, expect, it } from "vitest";
import { effectiveConfig } from "./describe.ts";
import { parseConfig } from "./load.ts";

const show = (text: string, environment: Record<string, string> = {}) =>
  effectiveConfig(
    parseConfig(text, { source: "dragoman.yaml", folder: "/srv", environment, overrides: { port: 5000 } }),
  );

describe("effectiveConfig", () => {
  it("shows values as they are written and where they come from", () => {
    const files = "limits: { file: 1MiB, mediaTypes: [image/*] }";
    const text = `agents: { echo: { use: echo, timeout: 90s } }\nlog: { level: \${LEVEL} }\n${files}`;
    const shown = show(text, { LEVEL: "warn" });
    expect(shown).toMatchObject({
      "server.host": { value: "127.0.0.1", origin: "default" },
      "server.port": { value: 5000, origin: "command line" },
      store: { value: "sqlite:/srv/.dragoman/data.db", origin: "default" },
      "agents.echo.use": { value: "echo", origin: "dragoman.yaml:1:24" },
      "agents.echo.timeout": { value: "90s", origin: "dragoman.yaml:1:39" },
      "limits.body": { value: "16MiB", origin: "default" },
      "limits.unsent": { value: "512MiB", origin: "default" },
      "limits.unsentPerOwner": { value: "128MiB", origin: "default" },
      "limits.headersTimeout": { value: "20s", origin: "default" },
      "limits.parts": { value: 1_000, origin: "default" },
      "limits.file": { value: "1MiB", origin: "dragoman.yaml:3:17" },
      "limits.mediaTypes": { value: ["image/*"], origin: "dragoman.yaml:3:35" },
      "retention.pruneAfter": { value: "never", origin: "default" },
      cancelGrace: { value: "5s", origin: "default" },
      "log.level": { value: "warn", origin: `dragoman.yaml:2:15 (\${LEVEL})` },
    });
  });

  it("shows a language model without its key", () => {
    const llm = "baseUrl: http://localhost/v1, model: m, apiKey: written, body: { temperature: 0.5, stop: [x] }";
    const shown = show(`agents: { a: { llm: { ${llm} } }, b: { use: outline, llm: { ${llm} } } }`);
    expect(JSON.stringify(shown)).not.toContain("written");
    expect(shown).toMatchObject({
      "agents.a.llm.baseUrl": { value: "http://localhost/v1" },
      "agents.a.llm.apiKey": { value: "***" },
      "agents.a.llm.idleTimeout": { value: "2m", origin: "default" },
      "agents.a.llm.body.stop": { value: '["x"]' },
      "agents.b.use": { value: "outline" },
      "agents.b.llm.model": { value: "m" },
    });
  });

  it("shows no secrets", () => {
    const text = `agents:
  a:
    exec: [run, --token, \${API_TOKEN}, \${MODE}, --password, written, --api-key=written, "http://u:written@h/x"]
    env: { PASSWORD: written, DATABASE: "\${DATABASE_SECRET}", DB: "postgres://u:written@h/x" }
`;
    const shown = show(text, { API_TOKEN: "hidden-1", DATABASE_SECRET: "hidden-2", MODE: "fast" });
    expect(JSON.stringify(shown)).not.toMatch(/hidden|written/);
    const database = "postgres://u:written@h/x?password=written";
    const store = show(`agents: { a: { use: echo } }\nstore: ${database}\ncluster: { listenUrl: "${database}" }`);
    expect(JSON.stringify(store)).not.toContain("written");
    expect(store).toMatchObject({ "cluster.lease": { value: "15s", origin: "default" } });
    const push = show(`agents: { a: { use: echo } }\npush: { hmac: { secret: written-for-all-to-see }, timeout: 5s }`);
    expect(push).toMatchObject({
      "push.timeout": { value: "5s", origin: "dragoman.yaml:2:60" },
      "push.hmac.secret": { value: "***" },
      "push.attempts": { value: 12, origin: "default" },
    });
    const entry = "agent: a, ak: written-ak, sk: written-sk";
    const phones = "push: { apiId: id, ak: written-a, sk: written-s }, upload: { uid: u, apiKey: written-u }";
    const account = "account: { tokenUrl: https://login.example, clientId: id, clientSecret: written-too }";
    const other = "agent: a, apiKey: written-key, header: X-Key";
    const clients = "agent: a, oauth: { clientId: id, clientSecret: written-again }";
    const xiaoyi = show(
      `agents: { a: { use: echo } }\nxiaoyi: { http: [{ ${entry}, ${account}, ${phones} }, { ${other} }, { ${clients} }] }`,
    );
    expect(JSON.stringify(xiaoyi)).not.toContain("written");
    expect(xiaoyi).toMatchObject({
      "xiaoyi.http[0].agent": { value: "a" },
      "xiaoyi.http[0].sk": { value: "***" },
      "xiaoyi.http[0].account.clientSecret": { value: "***" },
      "xiaoyi.http[0].sessionTtl": { value: "7d", origin: "default" },
      "xiaoyi.http[0].push.apiId": { value: "id" },
      "xiaoyi.http[0].push.sk": { value: "***" },
      "xiaoyi.http[0].push.spacing": { value: "15s", origin: "default" },
      "xiaoyi.http[0].upload.apiKey": { value: "***" },
      "xiaoyi.files.maxBytes": { value: "30MiB", origin: "default" },
      "xiaoyi.http[1].header": { value: "X-Key" },
      "xiaoyi.http[2].oauth.clientId": { value: "id" },
    });
    const dialIn = show(
      "agents: { a: { link: { agentId: shown, ak: written-ak, sk: written-sk, uid: u, apiKey: written-key, patience: 60s } } }",
    );
    expect(JSON.stringify(dialIn)).not.toContain("written");
    expect(dialIn).toMatchObject({
      "agents.a.link.agentId": { value: "shown" },
      "agents.a.link.sk": { value: "***" },
      "agents.a.link.apiKey": { value: "***" },
      "agents.a.link.patience": { value: "1m" },
    });
    expect(shown["agents.a.exec"]?.value).toEqual([
      "run",
      "--token",
      "***",
      "fast",
      "--password",
      "***",
      "--api-key=[redacted]",
      "http://[redacted]@h/x",
    ]);
    expect(shown["agents.a.env.PASSWORD"]?.value).toBe("***");
    expect(shown["agents.a.env.DB"]?.value).toBe("***");
  });
});
