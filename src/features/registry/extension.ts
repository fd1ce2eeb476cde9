import type { Extension } from "../../core/extension/contract.ts";
import { declareRegistryCommands } from "./cli/declare-registry-commands.ts";
import type { RegistryServeOptions } from "./server/open-registry.ts";

/** The section as an option of `serve`. */
export interface RegistrySection {
  /** The registry of agents, at `/registry`; false serves none. Default: one with the agents of this server. */
  readonly registry?: false | RegistryServeOptions;
}

export const registry: Extension = {
  name: "registry",
  requires: ["conformance"],
  commands: declareRegistryCommands,
  config: async () => {
    const { agentVisibility, registrySection } = await import("./server/config.ts");
    return { sections: { registry: registrySection }, agentKeys: { visibility: agentVisibility } };
  },
  serving: async () => {
    const { openRegistry } = await import("./server/open-registry.ts");
    return {
      async open(server) {
        const { registry: options = {} } = server.options as RegistrySection;
        return options === false ? {} : openRegistry(options, server);
      },
    };
  },
  doctor: async () => (await import("./cli/doctor.ts")).doctorParts,
  session: async () => (await import("./cli/session.ts")).sessionParts,
};
