/** Servers that people run themselves, and forms that belong to no vendor. */

import {
  COUNTED,
  chunk,
  counts,
  DONE,
  type Exchange,
  FILTERED,
  named,
  ONE_CALL,
  OSLO,
  ROME,
  TWO_CALLS,
  tool,
} from "./exchange.ts";

export const LOCAL: readonly Exchange[] = [
  [
    "Ollama",
    "whole calls that share an index, and an end called stop",
    {
      events: [
        chunk({ role: "assistant", content: "", ...tool({ id: "call_1", index: 0, ...named("weather", ROME) }) }),
        chunk({ role: "assistant", content: "", ...tool({ id: "call_2", index: 0, ...named("weather", OSLO) }) }),
        chunk({ role: "assistant", content: "" }, "stop"),
        DONE,
      ],
    },
    { calls: TWO_CALLS },
  ],
  [
    "Ollama",
    "a model that is not there",
    { status: 404, body: { error: "model 'm' not found" } },
    { failure: /404\. model 'm' not found$/ },
  ],
  [
    "vLLM",
    "a call in pieces, stop_reason beside the end",
    {
      events: [
        chunk({ role: "assistant", content: "" }, null, { prompt_token_ids: null }),
        chunk(tool({ id: "chatcmpl-tool-1", type: "function", index: 0, function: { name: "weather" } })),
        chunk(tool({ index: 0, function: { arguments: '{"text":"Ro' } })),
        chunk(tool({ index: 0, function: { arguments: 'me"}' } })),
        {
          ...chunk({}),
          choices: [{ index: 0, delta: { content: "" }, finish_reason: "tool_calls", stop_reason: null }],
        },
        { ...chunk({}), choices: [], usage: counts(10, 2) },
        DONE,
      ],
    },
    { calls: ONE_CALL },
  ],
  [
    "vLLM",
    "an end by abort",
    { events: [chunk({ content: "Well" }), chunk({}, "abort"), DONE] },
    { failure: /stopped its answer: abort\.$/ },
  ],
  [
    "vLLM",
    "an error in the stream, as older versions send it",
    {
      events: [{ object: "error", message: "too many tokens", type: "BadRequestError", param: null, code: 400 }, DONE],
    },
    { failure: /400\. too many tokens$/ },
  ],
  [
    "llama.cpp",
    "reasoning, times in the last event",
    {
      events: [
        chunk({ role: "assistant", content: null }),
        chunk({ reasoning_content: "Hm." }),
        chunk({ content: "Yes." }),
        chunk({}, "stop", { usage: counts(10, 2), timings: { predicted_n: 2 } }),
        DONE,
      ],
    },
    { text: "Yes.", reasoning: "Hm.", usage: COUNTED },
  ],
  [
    "llama.cpp",
    "an error in the stream",
    {
      events: [{ error: { code: 400, message: "the request exceeds the context", type: "exceed_context_size_error" } }],
    },
    { failure: /400\. the request exceeds the context$/ },
  ],
  [
    "llama.cpp",
    "a field of its own for an error",
    { events: [chunk({ content: "Well" }), 'error: {"code":500,"message":"no slot"}'] },
    { failure: /broke off/ },
  ],
  [
    "llama.cpp",
    "a model that is still loading",
    { status: 503, body: { error: { code: 503, message: "Loading model", type: "unavailable_error" } } },
    { failure: /HTTP status 503/ },
  ],
  [
    "LM Studio",
    "an event of type error",
    { events: ['event: error\ndata: {"error":{"message":"The model has crashed"}}'] },
    { failure: /reported an error\. The model has crashed$/ },
  ],
  [
    "LM Studio",
    "an address that it does not have, with status 200",
    { body: { error: "Unexpected endpoint or method. (POST /chat/completions)" } },
    { failure: /reported an error\. Unexpected endpoint/ },
  ],
  [
    "TGI",
    "an end called eos_token",
    { events: [chunk({ content: "Yes." }), chunk({ content: "" }, "eos_token"), DONE] },
    { text: "Yes." },
  ],
  ["any server", "no reason before the last event", { events: [chunk({ content: "Yes." }), DONE] }, { text: "Yes." }],
  [
    "any server",
    "a reason that is not known, beside a call",
    { events: [chunk(tool({ index: 0, id: "a", ...named("weather", ROME) })), chunk({}, "moon\u0007 phase"), DONE] },
    { failure: /stopped its answer: moon phase\.$/ },
  ],
  [
    "any server",
    "a filter, beside a call",
    { events: [chunk(tool({ index: 0, id: "a", ...named("weather", ROME) })), chunk({}, "content_filter"), DONE] },
    { failure: FILTERED },
  ],
];
