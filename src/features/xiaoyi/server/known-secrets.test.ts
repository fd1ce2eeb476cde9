import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../core/server/config/load.ts";
import { collectConfigSecrets } from "../../../core/server/config/secrets.ts";
import { createLog } from "../../../core/server/logging/log.ts";

/** With everything that is secret about Xiaoyi and about agents that dial in, each a word of its own. */
const CONFIG = `
agents:
  echo: { use: echo }
  far: { link: { agentId: far, ak: far-key, sk: planted-dial-in } }
  farther: { link: { agentId: farther, ak: farther-key, sk: planted-dial-in-too, uid: user, apiKey: planted-dial-in-key } }
  script: { exec: [agent], env: { API_TOKEN: planted-environment, MODE: fast } }
xiaoyi:
  http:
    - agent: echo
      ak: key
      sk: planted-http
      account: { tokenUrl: "https://login.example/token", clientId: id, clientSecret: planted-account }
      push: { apiId: trigger, ak: key, sk: planted-http-push }
      upload: { uid: user, apiKey: planted-http-upload }
    - { agent: echo, apiKey: planted-api-key }
    - { agent: echo, oauth: { clientId: id, clientSecret: planted-oauth } }
  links:
    - agent: echo
      agentId: one
      ak: key
      sk: planted-link
      uid: user
      apiKey: planted-link-upload
      push: { apiId: trigger, ak: key, sk: planted-link-push }
`;
const PLANTED = CONFIG.match(/planted-[a-z-]+/g) ?? [];

describe("what a configuration keeps secret", () => {
  const config = parseConfig(CONFIG, { source: "dragoman.yaml", folder: "/srv", environment: {}, overrides: {} });

  it("has every secret of Xiaoyi, of agents that dial in and of programs", () => {
    expect(PLANTED).toHaveLength(13);
    expect([...collectConfigSecrets(config)].sort()).toEqual([...PLANTED].sort());
  });

  it("stands in no line of the log, wherever it would", async () => {
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    const log = await createLog({ level: "debug", pretty: false, destination, secrets: collectConfigSecrets(config) });
    for (const secret of PLANTED) {
      log.info({ agent: secret, err: new Error(`It said ${secret}.`) }, `An agent dialled in with ${secret} in hand.`);
    }
    expect(lines).toHaveLength(PLANTED.length);
    expect(lines.join("")).not.toContain("planted-");
  });
});
