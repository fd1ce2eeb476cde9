/** OpenAI and Azure. */

import {
  COUNTED,
  chunk,
  counts,
  DONE,
  type Exchange,
  FILTERED,
  type Json,
  named,
  OSLO,
  TWO_CALLS,
  tool,
} from "./exchange.ts";

export const OPENAI: readonly Exchange[] = [
  [
    "OpenAI",
    "text, usage after it",
    {
      events: [
        chunk({ role: "assistant", content: "", refusal: null }, null, { usage: null }),
        chunk({ content: "Yes" }, null, { usage: null, obfuscation: "x3" }),
        chunk({ content: "." }, null, { usage: null }),
        chunk({}, "stop", { usage: null }),
        chunk({}, null, { choices: [], usage: { ...counts(10, 2), prompt_tokens_details: { cached_tokens: 4 } } }),
        DONE,
      ],
    },
    { text: "Yes.", usage: { ...COUNTED, cachedTokens: 4 } },
  ],
  [
    "OpenAI",
    "calls in pieces",
    {
      events: [
        chunk({ role: "assistant", content: null, ...tool({ index: 0, id: "call_a", ...named("weather", "") }) }),
        chunk(tool({ index: 0, function: { arguments: '{"text":' } })),
        chunk(tool({ index: 0, function: { arguments: '"Rome"}' } })),
        chunk(tool({ index: 1, id: "call_b", ...named("weather", "") })),
        chunk(tool({ index: 1, function: { arguments: OSLO } })),
        chunk({}, "tool_calls"),
        DONE,
      ],
    },
    { calls: TWO_CALLS },
  ],
  [
    "OpenAI",
    "a refusal",
    { events: [chunk({ refusal: "I can't help." }), chunk({}, "stop"), DONE] },
    { text: "I can't help." },
  ],
  [
    "OpenAI",
    "an unknown model",
    {
      status: 404,
      body: {
        error: { message: "The model `m` does not exist", type: "invalid_request_error", code: "model_not_found" },
      },
    },
    { failure: /404\. The model `m` does not exist$/ },
  ],
  [
    "OpenAI",
    "no credit",
    { status: 429, body: { error: { message: "You exceeded your current quota", code: "insufficient_quota" } } },
    { failure: /429\. You exceeded/ },
  ],
  [
    "OpenAI",
    "an error in the stream",
    { events: [{ error: { message: "The server had an error", type: "server_error", code: null } }] },
    { failure: /reported an error\. The server had an error$/ },
  ],
  [
    "Azure",
    "a first event without choices, results of filters",
    {
      events: [
        { id: "", object: "", created: 0, model: "", choices: [], prompt_filter_results: [{ prompt_index: 0 }] },
        chunk({ role: "assistant", content: "" }, null, { choices: [choiceOfAzure({ role: "assistant" })] }),
        chunk({}, null, { choices: [choiceOfAzure({ content: "Yes." })] }),
        chunk({}, "stop"),
        DONE,
      ],
    },
    { text: "Yes." },
  ],
  [
    "Azure",
    "a filtered answer",
    { events: [chunk({ content: "Well" }), chunk({}, "content_filter"), DONE] },
    { failure: FILTERED },
  ],
  [
    "Azure",
    "a filtered request",
    {
      status: 400,
      body: {
        error: { message: "The prompt triggered a policy", code: "content_filter", status: 400, innererror: {} },
      },
    },
    { failure: /400\. The prompt triggered a policy$/ },
  ],
  [
    "Azure",
    "a wrong key",
    { status: 401, body: { statusCode: 401, message: "Access denied due to invalid subscription key" } },
    { failure: /API key/ },
  ],
];

function choiceOfAzure(delta: Json): Json {
  return { index: 0, delta, finish_reason: null, content_filter_results: { hate: { filtered: false } } };
}
