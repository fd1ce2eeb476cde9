import { describe, expect, it } from "vitest";
import { effectiveConfig } from "../../../core/server/config/describe.ts";
import { type ConfigOverrides, parseConfig } from "../../../core/server/config/load.ts";
import { collectConfigSecrets } from "../../../core/server/config/secrets.ts";

const parse = (text: string, overrides: ConfigOverrides = {}) => {
  const place = { source: "dragoman.yaml", folder: "/srv/project", environment: {}, overrides };
  return parseConfig(`agents: { echo: { use: echo } }\n${text}`, place);
};

describe("registries where the agents are registered", () => {
  const read = (text: string, overrides = {}) => parse(text, overrides).sections.registry;

  it("are those of the file, then those of the command line", () => {
    const overrides = { registerWith: ["http://127.0.0.1:4000/"] };
    expect(read("", overrides)).toMatchObject({ registerWith: ["http://127.0.0.1:4000"] });
    const credentials = { bearer: "s3cret-value" };
    const file =
      "registry: { registerWith: [https://a.example, { url: https://b.example/, credentials: { bearer: s3cret-value } }] }";
    expect(read(file, overrides)).toMatchObject({
      registerWith: ["https://a.example", { url: "https://b.example", credentials }, "http://127.0.0.1:4000"],
    });
    const config = parse(file);
    expect(collectConfigSecrets(config)).toContain("s3cret-value");
    expect(JSON.stringify(effectiveConfig(config))).not.toContain("s3cret-value");
    expect(effectiveConfig(config)["registry.registerWith"]?.value).toEqual(["https://a.example", "https://b.example"]);
    expect(read("registry: false", overrides)).toBe(false);
  });

  it("are addresses without logins", () => {
    const message = "must be an http or https address without login, query or fragment";
    expect(() => parse('registry: { registerWith: ["https://me:pw@a.example"] }')).toThrow(
      `registry.registerWith[0]: ${message}`,
    );
  });
});
