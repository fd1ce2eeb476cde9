import { describe, expect, it } from "vitest";
import { effectiveConfig } from "./describe.ts";
import { parseConfig } from "./load.ts";

const show = (text: string, environment: Record<string, string> = {}) =>
  effectiveConfig(
    parseConfig(text, { source: "dragoman.yaml", folder: "/srv", environment, overrides: { port: 5000 } }),
  );

describe("effectiveConfig", () => {
  it("shows values as they are written and where they come from", () => {
    const shown = show(`agents: { echo: { use: echo, timeout: 90s } }\nlog: { level: \${LEVEL} }`, { LEVEL: "warn" });
    expect(shown).toMatchObject({
      "server.host": { value: "127.0.0.1", origin: "default" },
      "server.port": { value: 5000, origin: "command line" },
      store: { value: "sqlite:/srv/.dragoman/data.db", origin: "default" },
      "agents.echo.use": { value: "echo", origin: "dragoman.yaml:1:24" },
      "agents.echo.timeout": { value: "90s", origin: "dragoman.yaml:1:39" },
      "limits.body": { value: "16MiB", origin: "default" },
      "retention.pruneAfter": { value: "never", origin: "default" },
      cancelGrace: { value: "5s", origin: "default" },
      "log.level": { value: "warn", origin: `dragoman.yaml:2:15 (\${LEVEL})` },
    });
  });

  it("shows no secrets", () => {
    const text = `agents:
  a:
    exec: [run, --token, \${API_TOKEN}, \${MODE}]
    env: { PASSWORD: written, DATABASE: "\${DATABASE_SECRET}", MODE: plain }
`;
    const shown = show(text, { API_TOKEN: "hidden-1", DATABASE_SECRET: "hidden-2", MODE: "fast" });
    expect(JSON.stringify(shown)).not.toMatch(/hidden|written/);
    const push = show(`agents: { a: { use: echo } }\npush: { hmac: { secret: written-for-all-to-see }, timeout: 5s }`);
    expect(push).toMatchObject({
      "push.timeout": { value: "5s", origin: "dragoman.yaml:2:60" },
      "push.hmac.secret": { value: "***" },
      "push.attempts": { value: 12, origin: "default" },
    });
    expect(shown["agents.a.exec"]?.value).toEqual(["run", "--token", "***", "fast"]);
    expect(shown["agents.a.env.PASSWORD"]?.value).toBe("***");
    expect(shown["agents.a.env.MODE"]?.value).toBe("plain");
  });
});
