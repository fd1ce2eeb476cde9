/** Other agents as tools of a language model. */

import type { AgentProfile } from "../../core/model/card.ts";
import { fieldsOf, isObject, type JsonObject, type JsonValue } from "../../core/model/json.ts";
import { isDataPart, isTextPart, type Part } from "../../core/model/message.ts";
import type { TaskState } from "../../core/model/task.ts";
import type { ToolCall, ToolDefinition } from "./chat-codec.ts";
import { truncateToTokens } from "./message-content.ts";

/** One message to another agent on behalf of a turn. */
export interface AgentCall {
  readonly agent: string;
  /** Unique in the task: a call that is repeated after a crash has the same one. */
  readonly key: string;
  readonly parts: readonly Part[];
  /** The parts answer the question that the same call ended with. */
  readonly isReply: boolean;
}

export interface AgentAnswer {
  readonly state: TaskState;
  /** Of the artifacts, or of the status of a task that did not complete. */
  readonly parts: readonly Part[];
}

const MAX_DESCRIPTION_LENGTH = 1_000;

const PARAMETERS: JsonObject = {
  type: "object",
  properties: {
    text: { type: "string", description: "The message to the agent, complete in itself: it sees nothing else." },
    data: { type: "object", description: "Structured data for the agent, if it needs any." },
  },
  required: ["text"],
};

/** A tool for each agent. */
export function createAgentTools(agents: readonly string[], findProfile: (agent: string) => AgentProfile | undefined) {
  const names = toToolNames(agents);
  return {
    /** Read again for every request: profiles change when agents are reloaded. */
    definitions: (): readonly ToolDefinition[] =>
      [...names].map(([name, agent]) => {
        const description = describe(agent, findProfile(agent));
        return { name, description, parameters: PARAMETERS };
      }),
    /** The call to an agent that the model asked for, or why there is none, for the model. */
    parse(call: ToolCall): Pick<AgentCall, "agent" | "parts"> | { readonly problem: string } {
      const agent = names.get(call.name);
      if (agent === undefined)
        return { problem: `There is no tool ${call.name}; there are ${[...names.keys()].join(", ")}.` };
      const given = parseArguments(call.arguments);
      if (given === undefined) return { problem: "The arguments must be a JSON object with a string `text`." };
      const { data, text } = given;
      const parts: Part[] = typeof text === "string" && text !== "" ? [{ text }] : [];
      if (isObject(data)) parts.push({ data });
      return parts.length === 0 ? { problem: "The argument `text` is missing." } : { agent, parts };
    },
  };
}

/** Names of tools are letters, digits, dashes and underscores, 64 at most; those of agents may have dots. */
function toToolNames(agents: readonly string[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const agent of agents) {
    const plain = agent.replace(/[^\w-]/g, "_").slice(0, 60);
    let name = plain;
    for (let number = 2; names.has(name); number++) name = `${plain}_${number}`;
    names.set(name, agent);
  }
  return names;
}

function describe(agent: string, profile: AgentProfile | undefined): string {
  if (profile === undefined) return `The agent ${agent}.`;
  const skills = profile.skills.map(({ description, name }) => `${name}: ${description}`);
  return [profile.description, ...skills].join("\n").slice(0, MAX_DESCRIPTION_LENGTH);
}

function parseArguments(text: string): JsonObject | undefined {
  try {
    const value: JsonValue = JSON.parse(text === "" ? "{}" : text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What the model is given as the result of a call. */
export function toToolResult({ parts, state }: AgentAnswer, maxTokens: number): string {
  const text = parts.map(toText).join("\n\n");
  const content = truncateToTokens(text, maxTokens);
  const cut = content.length < text.length ? "\n[The rest was cut off.]" : "";
  if (state === "TASK_STATE_COMPLETED") return content === "" ? "Done, without a result." : content + cut;
  const outcome = state.replace("TASK_STATE_", "").toLowerCase().replaceAll("_", "-");
  return `The agent's task ended as ${outcome}.${content === "" ? "" : ` ${content}${cut}`}`;
}

function toText(part: Part): string {
  if (isTextPart(part)) return part.text;
  if (isDataPart(part)) return JSON.stringify(part.data);
  return `[file ${fieldsOf(part).filename ?? part.mediaType ?? ""}]`;
}
