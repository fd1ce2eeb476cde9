/** A workflow and the agents it calls, run in this process without a server that listens. */

import { randomUUID } from "node:crypto";
import type { AgentTurn } from "../../../core/agents/turn.ts";
import type { Output } from "../../../core/cli/output.ts";
import type { Agent } from "../../../core/engine/agent.ts";
import type { StreamEvent } from "../../../core/model/event.ts";
import { isObject } from "../../../core/model/json.ts";
import type { Part } from "../../../core/model/message.ts";
import type { CallContext } from "../../../core/model/operation.ts";
import type { Log, LogFields } from "../../../core/model/ports.ts";
import type { Task } from "../../../core/model/task.ts";
import type { FindAgents } from "../../../core/server/agent-chooser.ts";
import { agentKinds } from "../../../core/server/config/agent-kinds.ts";
import type { DragomanConfig } from "../../../core/server/config/index.ts";
import type { RegistrySection } from "../../registry/extension.ts";
import type { Workflow } from "../definition/plan.ts";

export interface WorkflowRun {
  /** Begins the run, or answers the question of a task. Ends when the task has ended or asks. */
  send(parts: readonly Part[], task?: Task): AsyncIterable<StreamEvent>;
  get(id: string): Promise<Task>;
  /** Resolves when the tasks of the steps are cancelled, too. A task that has ended stays as it is. */
  cancel(id: string): Promise<void>;
  close(): Promise<void>;
}

const CALL: CallContext = {
  caller: { owner: "command-line", authenticated: true },
  tenant: "",
  extensions: [],
  dialect: "command-line",
};

/**
 * Tasks are kept in memory: a run from the command line is not resumed, and the store of the configuration may be in
 * use by a server.
 */
export async function openWorkflowRun(
  workflow: Workflow,
  config: DragomanConfig | undefined,
  find: FindAgents,
  log: Log,
): Promise<WorkflowRun> {
  const { createCore } = await import("../../../core/server/core.ts");
  const { createWorkflowAgent } = await import("../agent/index.ts");
  const agents = config === undefined ? {} : await buildCallable(config, log);
  let name = "dragoman-run";
  while (Object.hasOwn(agents, name)) name += "-";
  // Recognises calls that come back to this process; no other process has the same.
  const baseUrl = `http://${randomUUID()}.invalid`;
  const agent = createWorkflowAgent({ workflow, name });
  let dropped: Promise<void> | undefined;
  const dropsTasks: Pick<Agent, "dropped"> = {
    dropped(task) {
      dropped = agent.dropped?.(task) ?? Promise.resolve();
      return dropped;
    },
  };
  const core = await createCore(
    {
      // Agents elsewhere are looked up where `find` says.
      ...({ registry: false } satisfies RegistrySection),
      agents: { ...agents, [name]: { ...agent, ...dropsTasks } },
      default: name,
      store: "memory:",
      push: false,
      log,
      ...(config && {
        limits: config.limits,
        times: config.times,
        strict: config.strict,
        baseDirectory: config.folder,
      }),
    },
    { baseUrl: () => baseUrl, grpc: () => undefined, find },
  );
  const service = core.engine.agent(name);
  return {
    async *send(parts, task) {
      const about = task === undefined ? undefined : { taskId: task.id, contextId: task.contextId };
      const message = { messageId: randomUUID(), role: "ROLE_USER" as const, parts, ...about };
      for await (const frames of await service.dispatch({ kind: "stream", message }, CALL)) {
        for (const { event } of frames) yield event;
      }
    },
    get: (id) => service.dispatch({ kind: "get", id }, CALL),
    async cancel(id) {
      await service.dispatch({ kind: "cancel", id }, CALL).catch(() => {});
      // The engine does not wait for what happens to the steps of a task that asks, and logs what fails.
      await dropped?.catch(() => {});
    },
    close: () => core.close(),
  };
}

async function buildCallable(config: DragomanConfig, log: Log): Promise<Readonly<Record<string, Agent>>> {
  const { buildAgent } = await import("../../../core/server/config/index.ts");
  const agents: Record<string, Agent> = {};
  for (const [name, agent] of config.agents) {
    agents[name] =
      agentKinds().get(agent.kind)?.isFixed === true
        ? await createAbsentAgent(name)
        : await buildAgent(name, agent, config, { log });
  }
  return agents;
}

/** In place of an agent that dials in: this process accepts no connections. */
async function createAbsentAgent(name: string): Promise<Agent> {
  const { defineAgent } = await import("../../../core/agents/define.ts");
  const reason = `Agent ${name} dials in to a server, and dragoman run does not listen. Name it by its url at a server that it dials in to.`;
  return defineAgent({
    name,
    description: "An agent that dials in.",
    inputModes: ["*/*"],
    async *run(turn: AgentTurn) {
      yield turn.failed(reason);
    },
  });
}

/** Only what a user has to know. */
export function createMessageLog(output: Output): Log {
  const show = ({ agent, err, stderr }: LogFields, message: string): void => {
    const about = typeof agent === "string" ? `${agent}: ` : "";
    const reason = isObject(err) || err instanceof Error ? ` ${err.message ?? ""}` : "";
    const written = typeof stderr === "string" && stderr !== "" ? `: ${stderr.trimEnd()}` : "";
    output.warn(`${about}${message}${written}${reason}`);
  };
  return { debug: () => {}, info: () => {}, warn: show, error: show };
}
