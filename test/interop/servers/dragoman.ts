import { defineAgent, serve } from "../../../src/index.ts";
import { behave } from "../behaviour.ts";
import { CREDENTIALS } from "../driver.ts";
import type { Gates } from "../gates.ts";
import { PROFILE, type RunningServer, type ServerFeatures } from "./profile.ts";

/** Our server with the steered agent. */
export async function serveDragoman(features: ServerFeatures, gates: Gates): Promise<RunningServer> {
  const { description, extendedSkill, inputModes, name, outputModes, skill, version } = PROFILE;
  const steered = defineAgent({
    name,
    description,
    version,
    inputModes,
    outputModes,
    skills: [skill],
    extended: { skills: [extendedSkill] },
    run: (turn) => behave({ parts: turn.parts, answers: turn.history.length > 0, signal: turn.signal }, gates),
  });
  const server = await serve({
    agents: { steered },
    port: 0,
    push: features.push,
    authenticate: ({ headers }) =>
      headers.authorization === CREDENTIALS.Authorization ? { owner: "alice", authenticated: true } : undefined,
    log: false,
    times: { drainMs: 0 },
  });
  return { url: server.url, close: () => server.close() };
}
