/** Other hosted models. */

import {
  COUNTED,
  chunk,
  counts,
  DONE,
  type Exchange,
  FILTERED,
  named,
  OSLO,
  ROME,
  TWO_CALLS,
  tool,
} from "./exchange.ts";

export const HOSTED: readonly Exchange[] = [
  [
    "Mistral",
    "whole calls without an index, with ids of null",
    {
      events: [
        chunk({ role: "assistant", content: "" }),
        chunk({
          content: "",
          tool_calls: [
            { id: "null", function: { name: "weather", arguments: ROME } },
            { id: "null", function: { name: "weather", arguments: OSLO } },
          ],
        }),
        chunk({ content: "" }, "tool_calls", { usage: counts(10, 2) }),
        DONE,
      ],
    },
    { calls: TWO_CALLS },
  ],
  [
    "Mistral",
    "thinking as parts of the content",
    {
      events: [
        chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "Hm." }] }] }),
        chunk({ content: [{ type: "text", text: "Yes." }] }),
        chunk({ content: "" }, "model_length"),
        DONE,
      ],
    },
    { text: "Yes.", reasoning: "Hm." },
  ],
  [
    "Mistral",
    "a request that is not valid",
    { status: 422, body: { detail: [{ type: "missing", loc: ["body", "messages"], msg: "Field required" }] } },
    { failure: /422\. Field required$/ },
  ],
  [
    "Mistral",
    "an error",
    {
      status: 400,
      body: { object: "error", message: "Invalid model: m", type: "invalid_model", param: null, code: "1500" },
    },
    { failure: /400\. Invalid model: m$/ },
  ],
  [
    "Groq",
    "usage of its own",
    {
      events: [
        chunk({ role: "assistant", content: "" }, null, { x_groq: { id: "req_1" } }),
        chunk({ content: "Yes." }),
        chunk({}, "stop", { x_groq: { id: "req_1", usage: counts(10, 2) } }),
        DONE,
      ],
    },
    { text: "Yes.", usage: COUNTED },
  ],
  [
    "Groq",
    "an error of its own in the stream",
    {
      events: [chunk({ content: "Well" }), chunk({}, null, { x_groq: { id: "req_1", error: "stopped early" } }), DONE],
    },
    { failure: /reported an error\. stopped early$/ },
  ],
  [
    "Groq",
    "an event of type error",
    {
      events: [
        'event: error\ndata: {"error":{"message":"Failed to call a function","code":"tool_use_failed","status_code":400}}',
      ],
    },
    { failure: /400\. Failed to call a function$/ },
  ],
  [
    "OpenRouter",
    "comments, reasoning twice",
    {
      events: [
        ": OPENROUTER PROCESSING",
        ": OPENROUTER PROCESSING",
        chunk({
          role: "assistant",
          content: "",
          reasoning: "Hm.",
          reasoning_details: [{ type: "reasoning.text", text: "Hm." }],
        }),
        {
          ...chunk({}),
          choices: [{ index: 0, delta: { content: "Yes." }, finish_reason: "stop", native_finish_reason: "STOP" }],
        },
        { ...chunk({ role: "assistant", content: "" }), usage: counts(10, 2) },
        DONE,
      ],
    },
    { text: "Yes.", reasoning: "Hm.", usage: COUNTED },
  ],
  [
    "OpenRouter",
    "an error after text",
    {
      events: [
        chunk({ content: "Well" }),
        chunk({ content: "" }, "error", { error: { code: 502, message: "Provider disconnected" } }),
        DONE,
      ],
    },
    { failure: /HTTP status 502/ },
  ],
  [
    "OpenRouter",
    "an end by an error without its reason",
    { events: [chunk({ content: "Well" }), chunk({ content: "" }, "error"), DONE] },
    { failure: /stopped its answer: error\.$/ },
  ],
  [
    "Gemini",
    "whole calls that all have the same index and an empty id",
    {
      events: [
        chunk({ role: "assistant", ...tool({ index: 0, id: "", ...named("weather", ROME) }) }),
        chunk({ role: "assistant", ...tool({ index: 0, id: "", ...named("weather", OSLO) }) }, "stop"),
        DONE,
      ],
    },
    { calls: TWO_CALLS },
  ],
  [
    "Gemini",
    "a filtered answer",
    { events: [chunk({ role: "assistant" }, "content_filter: PROHIBITED_CONTENT"), DONE] },
    { failure: FILTERED },
  ],
  [
    "Gemini",
    "an error in a list",
    { status: 400, body: [{ error: { code: 400, message: "API key not valid.", status: "INVALID_ARGUMENT" } }] },
    { failure: /400\. API key not valid\.$/ },
  ],
  [
    "Anthropic",
    "usage in the last event",
    {
      events: [
        chunk({ role: "assistant", content: "" }),
        chunk({ content: "Yes." }),
        chunk({}, "stop"),
        { ...chunk({}), choices: [], usage: counts(10, 2) },
        DONE,
      ],
    },
    { text: "Yes.", usage: COUNTED },
  ],
  [
    "Anthropic",
    "the names of its own interface",
    { events: [chunk({ content: "Yes." }), chunk({}, "end_turn"), DONE] },
    { text: "Yes." },
  ],
  [
    "Anthropic",
    "an overload in the stream",
    { events: [{ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }] },
    { failure: /reported an error\. Overloaded$/ },
  ],
  [
    "Cohere",
    "ends in capitals",
    { events: [chunk({ content: "Yes." }), chunk({}, "COMPLETE"), DONE] },
    { text: "Yes." },
  ],
];
