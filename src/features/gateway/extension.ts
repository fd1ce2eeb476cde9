import type { Extension } from "../../core/extension/contract.ts";

export const gateway: Extension = {
  name: "gateway",
  config: async () => {
    const { remoteKind } = await import("./config-schema.ts");
    return { agentKinds: { remote: remoteKind } };
  },
  doctor: async () => (await import("./doctor.ts")).doctorParts,
  serving: async () => {
    const { createAgentChooser } = await import("./found-agents.ts");
    return { createAgentChooser };
  },
};
