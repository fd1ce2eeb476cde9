/** An agent that answers with a language model. */

import { defineAgent } from "../../core/agents/define.ts";
import { createDirectoryAgent } from "../../core/agents/directory.ts";
import type { Agent } from "../../core/engine/agent.ts";
import { answer, cancelOpenCall, type LlmChat } from "./answer.ts";
import { createChatModel } from "./chat-model.ts";
import type { LlmHost, LlmOptions } from "./options.ts";

interface LlmAgentOptions extends LlmOptions {
  /** Name of the agent in the configuration. */
  readonly id: string;
  readonly host: LlmHost;
}

const TEXT_MODES = ["text/plain", "text/*", "application/json", "application/xml", "application/yaml"];
/** A turn may have several requests, and models that reason take minutes for one. */
export const LLM_TIMEOUT = "10m";

export function createLlmAgent(options: LlmAgentOptions): Agent {
  const { host, id, images } = options;
  const model = createChatModel(options, host);
  return createDirectoryAgent((directory, services) => {
    const chat: LlmChat = { ...options, model, directory, services };
    const agent = defineAgent({
      name: id,
      description: `Answers with the language model ${options.model}.`,
      inputModes: [...TEXT_MODES, ...(images ? ["image/*"] : [])],
      outputModes: ["text/plain"],
      timeout: LLM_TIMEOUT,
      // A repeated run continues after the calls of agents that were answered; beyond that it only costs tokens.
      onCrash: "resume",
      run: (turn) => answer(turn, chat),
    });
    return { ...agent, dropped: (task) => cancelOpenCall(task, chat) };
  });
}
