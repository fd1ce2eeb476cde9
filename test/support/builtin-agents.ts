import { createEchoAgent } from "../../src/core/agents/builtin.ts";
import { createWriterAgent } from "../../src/features/writers/agents.ts";
import { createTckAgent } from "../../src/features/writers/tck.ts";

/** What `use:` creates in a configuration. */
export const BUILTIN_AGENTS = {
  echo: createEchoAgent,
  outline: () => createWriterAgent("outline"),
  document: () => createWriterAgent("document"),
  summary: () => createWriterAgent("summary"),
  tck: createTckAgent,
} as const;
