import type { Agent } from "../engine/agent.ts";
import { createDocumentAgent } from "./document.ts";
import { createEchoAgent } from "./echo.ts";
import { createOutlineAgent } from "./outline.ts";
import { createSummaryAgent } from "./summary.ts";
import { createTckAgent } from "./tck.ts";

/** What `use:` in a configuration may name. */
export const BUILTIN_NAMES = ["echo", "outline", "document", "summary", "tck"] as const;
export type BuiltinName = (typeof BUILTIN_NAMES)[number];

export const BUILTIN_AGENTS = {
  echo: createEchoAgent,
  outline: createOutlineAgent,
  document: createDocumentAgent,
  summary: createSummaryAgent,
  tck: createTckAgent,
} as const satisfies Record<BuiltinName, () => Agent>;
