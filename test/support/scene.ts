/** A server with a scripted agent, for one block of tests. */
import { afterAll, beforeAll, describe } from "vitest";
import type { AgentDefinition } from "../../src/core/agents/define.ts";
import type { Agent } from "../../src/core/engine/agent.ts";
import { type DragomanServer, type ServeOptions, serve } from "../../src/index.ts";
import { BINDINGS, type Binding, HTTP_BINDINGS, type HttpBinding } from "./bindings.ts";
import { Stage } from "./stage.ts";
import { STORES, type StoreSpec } from "./store-specs.ts";
import { WireClient } from "./wire-client.ts";

export interface Scene {
  readonly server: DragomanServer;
  readonly stage: Stage;
  /** A caller of an agent; of the default one unless named. */
  client(agent?: string): WireClient;
}

export interface SceneOptions extends Partial<Omit<ServeOptions, "agents" | "store">> {
  /** Further agents on the same stage, by name. */
  readonly agents?: Readonly<Record<string, Partial<AgentDefinition>>>;
  readonly others?: Readonly<Record<string, Agent>>;
}

/** Declares the hooks that start and stop the server; what is returned may be used once they have run. */
export function useScene(
  binding: Binding,
  options: SceneOptions = {},
  spec: StoreSpec = STORES[0] as StoreSpec,
): Scene {
  const stage = new Stage();
  const { agents = {}, others = {}, ...rest } = options;
  let server: DragomanServer;
  let remove = () => {};
  beforeAll(async () => {
    const created = spec.create();
    remove = created.remove;
    server = await serve({
      port: 0,
      log: false,
      store: created.store,
      agents: { stage: stage.agent(), ...stagedBy(stage, agents), ...others },
      ...rest,
      times: { drainMs: 0, ...rest.times },
    });
  });
  afterAll(async () => {
    await server?.close();
    remove();
  });
  return {
    get server() {
      return server;
    },
    stage,
    client: (agent) => new WireClient(binding, agent === undefined ? server.url : `${server.url}/agents/${agent}`),
  };
}

function stagedBy(stage: Stage, agents: Readonly<Record<string, Partial<AgentDefinition>>>): Record<string, Agent> {
  return Object.fromEntries(Object.entries(agents).map(([name, definition]) => [name, stage.agent(definition)]));
}

/** The tests once for each binding. */
export function describeBindings(
  title: string,
  options: SceneOptions,
  tests: (scene: Scene, binding: Binding) => void,
) {
  describe.each(BINDINGS)(`${title} over $name`, (binding) => tests(useScene(binding, options), binding));
}

/** The tests once for each binding of JSON over HTTP, for what only those have: paths, media types, bodies, frames. */
export function describeHttpBindings(
  title: string,
  options: SceneOptions,
  tests: (scene: Scene, binding: HttpBinding) => void,
) {
  describe.each(HTTP_BINDINGS)(`${title} over $name`, (binding) => tests(useScene(binding, options), binding));
}

/** The tests once for each binding on each store. */
export function describeStores(title: string, options: SceneOptions, tests: (scene: Scene, binding: Binding) => void) {
  describe.each(STORES)(`${title} on $name`, (spec) => {
    describe.each(BINDINGS)("over $name", (binding) => tests(useScene(binding, options, spec), binding));
  });
}
