/** Our server with an `llm:` agent, and the server of the model behind it. */

import { buildAgents } from "../../src/core/server/config/build-agents.ts";
import { parseConfig } from "../../src/core/server/config/load.ts";
import {
  type ModelServer,
  type ScriptedAnswer,
  startModelServer,
} from "../../src/features/llm/testing/model-server.ts";
import type { ServeOptions } from "../../src/index.ts";
import { HTTP_BINDINGS } from "../support/bindings.ts";
import { closeLater, startServer } from "../support/lifecycle.ts";
import { WireClient } from "../support/wire-client.ts";
import type { WireTask } from "../support/wire-types.ts";

export async function startModel(...answers: readonly ScriptedAnswer[]): Promise<ModelServer> {
  const model = await startModelServer(...answers);
  closeLater(() => model.close());
  return model;
}

export const KEY = "sk-test-0123456789";

interface Stage {
  /** Further settings of `llm` of the agent `helper`. */
  readonly llm?: string;
  /** Lines of YAML with further agents. */
  readonly agents?: string;
  /** Lines of YAML beside the agents. */
  readonly config?: string;
  readonly options?: Partial<ServeOptions>;
}

export async function serveModel(
  model: Pick<ModelServer, "baseUrl">,
  { agents = "", config: more = "", llm = "", options = {} }: Stage = {},
) {
  const text = `agents:
  helper: { llm: { baseUrl: "${model.baseUrl}", model: test, apiKey: "${KEY}"${llm === "" ? "" : `, ${llm}`} } }
${agents}
${more}
`;
  const config = parseConfig(text, { source: "dragoman.yaml", folder: ".", environment: {} });
  const built = Object.fromEntries(await buildAgents(config));
  const server = await startServer({ grpcPort: false, ...options, agents: { ...built, ...options.agents } });
  const clientOf = (agent: string) => new WireClient(HTTP_BINDINGS[0], `${server.url}/agents/${agent}`);
  return { server, client: clientOf("helper"), clientOf };
}

export function textOfTask({ artifacts = [] }: WireTask, name = "answer"): string {
  const parts = artifacts.filter((artifact) => artifact.name === name).flatMap((artifact) => artifact.parts);
  return parts.map((part) => part.text ?? "").join("");
}

export function reasonOf({ status }: WireTask): string {
  return (status.message?.parts ?? []).map((part) => part.text ?? "").join("");
}

export const USAGE = "urn:dragoman:ext:usage:v1";
