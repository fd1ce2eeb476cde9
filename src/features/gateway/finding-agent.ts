import { cancelAtPeer, findChildId } from "../../core/agents/child-task.ts";
import { type AgentDefinition, defineAgent } from "../../core/agents/define.ts";
import { ANY_MODE } from "../../core/agents/describe-upstream.ts";
import { type ChosenAgent, createDirectoryAgent } from "../../core/agents/directory.ts";
import { FORWARD_DIALECT, forward, type Peer } from "../../core/agents/forward.ts";
import type { Agent } from "../../core/engine/agent.ts";
import { EXTENSIONS } from "../../core/model/extensions.ts";
import type { WantedAgent } from "../../core/server/agent-chooser.ts";

interface FindingAgentOptions extends Partial<Omit<AgentDefinition, "run" | "streaming">> {
  readonly name: string;
  readonly wanted: WantedAgent;
}

/** Key in a task's memory: the agent that was chosen for it. */
const CHOSEN = "chosen";

/**
 * An agent that forwards each task to an agent that is looked up in the registry when the task begins. Everything that
 * belongs to the task goes to the same one, also after a crash.
 */
export function createFindingAgent({ wanted, ...definition }: FindingAgentOptions): Agent {
  const policy = definition.onCrash ?? "fail";
  return createDirectoryAgent((directory) => ({
    ...defineAgent({ ...describe(definition.name, wanted), ...definition, run: () => undefined }),
    // As long as the agent is not known, it is assumed that it can be asked for the task.
    onCrash: "resume",
    run: (turn) => {
      const find = async (): Promise<Peer> => {
        const chosen = await turn.memory.get<ChosenAgent>(CHOSEN);
        if (chosen !== undefined) return directory.resolve({ chosen }, turn);
        const peer = await directory.resolve(wanted, turn, { elsewhere: true });
        if (peer.chosen !== undefined) await turn.memory.set(CHOSEN, peer.chosen);
        return peer;
      };
      return forward(turn, find, policy);
    },
    async dropped(task) {
      const id = await findChildId(task.memory);
      const chosen = await task.memory.get<ChosenAgent>(CHOSEN);
      if (id === undefined || chosen === undefined) return;
      await cancelAtPeer(await directory.resolve({ chosen }, task), id, task.caller, FORWARD_DIALECT);
    },
  }));
}

function describe(name: string, wanted: WantedAgent): Omit<AgentDefinition, "run"> {
  const isSkill = "skill" in wanted;
  const what = isSkill ? `an agent with the skill ${wanted.skill}` : `the agent ${wanted.registered}`;
  const description = `Forwards to ${what}, which is looked up in the registry.`;
  return {
    name,
    description,
    inputModes: ANY_MODE,
    outputModes: ANY_MODE,
    ...(isSkill && { skills: [{ id: wanted.skill, name: wanted.skill, description }] }),
    extensions: [
      {
        uri: EXTENSIONS.upstream,
        description: "Requests are forwarded to another agent.",
        params: isSkill ? { skill: wanted.skill } : { agent: wanted.registered },
      },
    ],
  };
}
