import { z } from "zod";
import { count, optional, text, wait } from "../../../core/yaml/value-types.ts";

/** Names of steps are segments of references and names of artifacts. */
const STEP_NAME = /^[\p{L}\p{N}][\p{L}\p{N}_-]{0,63}$/u;
export const STEP_NAME_ERROR = "must be letters, digits, dashes and underscores, at most 64";

const MAX_CONCURRENCY = 1_000;
const MAX_ATTEMPTS = 100;

/** What a step may call; exactly one. */
export const TARGETS = ["agent", "url", "skill", "workflow"] as const;
export const FOREACH_ONLY = ["concurrency"] as const;

const URL_ERROR = "must be an http or https address without login";
/** A participant of a chat room; the server knows which it can reach. */
const PEER_ADDRESS = /^(?!https?:)[a-z][a-z0-9-]*:[a-z][a-z0-9-]*\/.+#[^#]+$/;

const PARTS_ERROR = "must be ${input.parts}, ${steps.NAME.artifacts}, or a list of them";

const input = z.strictObject({
  text: optional(z.string(), "Text of the message; values inside it are encoded as text."),
  data: optional(
    z.json(),
    "Data of the message: any value. A text that is one `${…}` and nothing else keeps the type of its value.",
  ),
  parts: optional(
    z.union([z.string(), z.array(z.string()).min(1, { error: PARTS_ERROR })], { error: PARTS_ERROR }),
    "Parts that are passed on as they are, files for instance: `${input.parts}`, `${steps.NAME.artifacts}`, or a list of them.",
  ),
});

const retry = z.strictObject({
  attempts: count
    .max(MAX_ATTEMPTS)
    .default(1)
    .describe("How often the step is tried at most, the first time included."),
  delay: wait
    .prefault("1s")
    .describe(
      "Pause before the second attempt; each further one is twice as long, and shortened at random by up to half.",
    ),
  maxDelay: wait.prefault("30s").describe("The longest pause."),
});

export const stepSchema = z.strictObject({
  agent: optional(text, "Name of an agent of the configuration."),
  url: optional(
    z.union(
      [z.url({ protocol: /^https?$/ }).refine((url) => !/\/\/[^/]*@/.test(url)), z.string().regex(PEER_ADDRESS)],
      { error: URL_ERROR },
    ),
    "Address of an agent, or of its card; or of a participant of a chat room.",
  ),
  skill: optional(
    text,
    "Id of a skill that exactly one agent of the configuration has, or else an agent that the registry finds.",
  ),
  workflow: optional(
    z.union([text, z.looseObject({})], { error: "must be a file, or a workflow with its steps" }),
    "A workflow as a step: a file, relative to this one, or its content.",
  ),
  needs: z.array(text).default([]).describe("Steps that have to end before this one starts."),
  input: optional(
    z.union([z.string(), input], { error: "must be text, or a map of text, data and parts" }),
    "The message that is sent; default: the one that the workflow was called with.",
  ),
  when: optional(text, "Condition; the step is skipped if it is false."),
  foreach: optional(
    z.union([z.string(), z.array(z.json())], { error: "must be a list, or ${…} that gives one" }),
    "Run the step once for each item of a list, with `${item}` and `${index}`.",
  ),
  concurrency: optional(
    count.max(MAX_CONCURRENCY),
    "With `foreach`: how many items are worked on at the same time; default: 4.",
  ),
  retry: retry.prefault({}).describe("Further attempts after a failure; default: none."),
  timeout: optional(wait, "Maximum duration of one attempt."),
  onFailure: z
    .enum(["stop", "continue"])
    .default("stop")
    .describe("Whether a failure of the step ends the workflow (`stop`) or not (`continue`)."),
  outputSchema: optional(
    z.looseObject({}),
    "JSON Schema of the data that the step returns; the step fails if it returns something else.",
  ),
});

export type ParsedStep = z.output<typeof stepSchema>;

const steps = (step: z.ZodType) =>
  z
    .record(z.string().regex(STEP_NAME, { error: STEP_NAME_ERROR }), step)
    .describe("Steps by name. Those that do not need each other run at the same time.");

const about = {
  name: optional(text, "Name on the card of the agent that the workflow is served as."),
  description: optional(text, "What it does, for its card."),
};

const output = optional(
  z.array(text).min(1, { error: "must name at least one step" }),
  "Steps whose artifacts the workflow returns, named after the steps; default: those that no other step needs.",
);

/** The file without its steps, which are validated one by one: the valid ones are checked further. */
export const workflowSchema = z.strictObject({ ...about, steps: steps(z.unknown()), output });

/** The whole file, for the JSON Schema. */
export const fileSchema = z.strictObject({ ...about, steps: steps(stepSchema), output });
