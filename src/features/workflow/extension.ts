import type { Extension } from "../../core/extension/contract.ts";
import { declareRun } from "./cli/declare-run.ts";

export const workflow: Extension = {
  name: "workflow",
  requires: ["registry"],
  commands: declareRun,
  config: async () => {
    const { workflowKind } = await import("./config.ts");
    return { agentKinds: { workflow: workflowKind } };
  },
};
