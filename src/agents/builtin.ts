import type { Agent } from "../engine/agent.ts";
import type { BuiltinName } from "./builtin-names.ts";
import { createDocumentAgent } from "./document.ts";
import { createEchoAgent } from "./echo.ts";
import { createOutlineAgent } from "./outline.ts";
import { createSummaryAgent } from "./summary.ts";
import { createTckAgent } from "./tck.ts";

export const BUILTIN_AGENTS = {
  echo: createEchoAgent,
  outline: createOutlineAgent,
  document: createDocumentAgent,
  summary: createSummaryAgent,
  tck: createTckAgent,
} as const satisfies Record<BuiltinName, () => Agent>;
