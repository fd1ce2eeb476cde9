import type { Extension } from "../../core/extension/contract.ts";

export const llm: Extension = {
  name: "llm",
  requires: ["writers"],
  doctor: async () => (await import("./doctor.ts")).doctorParts,
  config: async () => {
    const { llmKind } = await import("./config.ts");
    return { agentKinds: { llm: llmKind } };
  },
};
