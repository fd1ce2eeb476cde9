import type { BuiltinAgent, Extension } from "../../core/extension/contract.ts";
import { WRITER_NAMES, type WriterName } from "./names.ts";

const writer = (name: WriterName): BuiltinAgent => ({
  create: async () => (await import("./agents.ts")).createWriterAgent(name),
});

export const writers: Extension = {
  name: "writers",
  config: async () => {
    const { tckKeys } = await import("./tck-keys.ts");
    return {
      builtinAgents: {
        ...Object.fromEntries(WRITER_NAMES.map((name) => [name, writer(name)])),
        tck: { create: async (options) => (await import("./tck.ts")).createTckAgent(options), keys: tckKeys },
      },
    };
  },
};
