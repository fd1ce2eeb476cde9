/** Vendors in China. */

import {
  COUNTED,
  chunk,
  counts,
  DONE,
  type Exchange,
  FILTERED,
  named,
  ONE_CALL,
  ROME,
  tool,
  whole,
} from "./exchange.ts";

const MINIMAX_FRAME = { usage: { total_tokens: 0, total_characters: 0 }, input_sensitive: false };
const MINIMAX_OK = { base_resp: { status_code: 0, status_msg: "" } };

export const CHINA: readonly Exchange[] = [
  [
    "DeepSeek",
    "reasoning beside a content of null, usage in the last event",
    {
      events: [
        ": keep-alive",
        chunk({ role: "assistant", content: null, reasoning_content: "" }),
        chunk({ content: null, reasoning_content: "Hm." }),
        chunk({ content: "Yes.", reasoning_content: null }),
        chunk({ content: "", reasoning_content: null }, "stop", {
          usage: { ...counts(10, 2), completion_tokens_details: { reasoning_tokens: 1 } },
        }),
        DONE,
      ],
    },
    { text: "Yes.", reasoning: "Hm.", usage: { ...COUNTED, reasoningTokens: 1 } },
  ],
  [
    "DeepSeek",
    "too few resources",
    { events: [chunk({ content: "Well" }), chunk({ content: "" }, "insufficient_system_resource"), DONE] },
    { failure: /stopped its answer: insufficient_system_resource\.$/ },
  ],
  [
    "DeepSeek",
    "no balance",
    {
      status: 402,
      body: { error: { message: "Insufficient Balance", type: "unknown_error", code: "invalid_request_error" } },
    },
    { failure: /402\. Insufficient Balance$/ },
  ],
  [
    "Qwen",
    "text, usage without choices",
    {
      events: [
        chunk({ content: "", role: "assistant" }, null, { usage: null }),
        chunk({ content: "Yes." }, null, { usage: null }),
        chunk({ content: "" }, "stop", { usage: null }),
        { choices: [], object: "chat.completion.chunk", usage: counts(10, 2), id: "chatcmpl-1" },
        DONE,
      ],
    },
    { text: "Yes.", usage: COUNTED },
  ],
  [
    "Qwen",
    "a call whose later pieces have an empty id and a name of null",
    {
      events: [
        chunk(tool({ index: 0, id: "call_1", ...named("weather", "") })),
        chunk(tool({ index: 0, id: "", type: "function", function: { name: null, arguments: '{"text": ' } })),
        chunk(tool({ index: 0, id: "", type: "function", function: { arguments: '"Rome"}' } })),
        chunk({ content: "" }, "tool_calls"),
        DONE,
      ],
    },
    { calls: [["weather", '{"text": "Rome"}']] },
  ],
  [
    "DashScope",
    "an end that is the text null until the last event",
    { events: [chunk({ content: "Yes" }, "null"), chunk({ content: "." }, "stop"), DONE] },
    { text: "Yes." },
  ],
  [
    "DashScope",
    "an error that is not in a member",
    {
      events: [
        { code: "DataInspectionFailed", message: "Output data may contain inappropriate content.", request_id: "1" },
      ],
    },
    { failure: /reported an error\. Output data may contain/ },
  ],
  [
    "Zhipu",
    "text",
    {
      events: [
        chunk({ role: "assistant", content: "Yes." }),
        chunk({ content: "" }, "stop", { usage: counts(10, 2) }),
        DONE,
      ],
    },
    { text: "Yes.", usage: COUNTED },
  ],
  [
    "Zhipu",
    "a whole call",
    { events: [chunk(tool({ index: 0, id: "call_1", ...named("weather", ROME) }), "tool_calls"), DONE] },
    { calls: ONE_CALL },
  ],
  [
    "Zhipu",
    "a filtered answer",
    { events: [chunk({ content: "Well" }), chunk({}, "sensitive"), DONE] },
    { failure: FILTERED },
  ],
  [
    "Zhipu",
    "an error of its network",
    { events: [chunk({ content: "Well" }), chunk({}, "network_error"), DONE] },
    { failure: /stopped its answer: network_error\.$/ },
  ],
  [
    "Zhipu",
    "a context that is full",
    { events: [chunk({ content: "Well" }), chunk({}, "model_context_window_exceeded"), DONE] },
    { text: "Well" },
  ],
  [
    "Zhipu",
    "no balance",
    { status: 429, body: { error: { code: "1113", message: "账户已欠费" } } },
    { failure: /429\. 账户已欠费$/ },
  ],
  [
    "Moonshot",
    "usage in the choice",
    {
      events: [
        chunk({ role: "assistant", content: "" }),
        chunk({ content: "Yes." }),
        { ...chunk({}), choices: [{ index: 0, delta: {}, finish_reason: "stop", usage: counts(10, 2) }] },
        DONE,
      ],
    },
    { text: "Yes.", usage: COUNTED },
  ],
  [
    "Moonshot",
    "no credit",
    { status: 429, body: { error: { message: "Your account is suspended", type: "exceeded_current_quota_error" } } },
    { failure: /429\. Your account is suspended$/ },
  ],
  [
    "MiniMax",
    "the whole answer after its pieces, without a last event",
    {
      events: [
        chunk({ role: "assistant", content: "", name: "MiniMax AI", reasoning_content: "Hm." }, null, MINIMAX_FRAME),
        chunk({ role: "", content: "Yes" }, "", MINIMAX_FRAME),
        chunk({ role: "", content: "." }, "stop", MINIMAX_FRAME),
        whole({ content: "Yes.", reasoning_content: "Hm." }, "stop", { usage: counts(10, 2), ...MINIMAX_OK }),
      ],
    },
    { text: "Yes.", reasoning: "Hm.", usage: COUNTED },
  ],
  [
    "MiniMax",
    "calls, and all of them again",
    {
      events: [
        chunk(tool({ index: 0, id: "call_1", ...named("weather", ROME) }), null, MINIMAX_FRAME),
        chunk({}, "tool_calls", MINIMAX_FRAME),
        whole(tool({ id: "call_1", ...named("weather", ROME) }), "tool_calls", MINIMAX_OK),
      ],
    },
    { calls: ONE_CALL },
  ],
  ["MiniMax", "only the whole answer", { events: [whole({ content: "Yes." }, "stop", MINIMAX_OK)] }, { text: "Yes." }],
  [
    "MiniMax",
    "a wrong key, with status 200",
    { body: { base_resp: { status_code: 1004, status_msg: "login fail" } } },
    { failure: /API key/ },
  ],
  [
    "MiniMax",
    "no balance, with status 200",
    { body: { base_resp: { status_code: 1008, status_msg: "insufficient balance" } } },
    { failure: /402\. insufficient balance$/ },
  ],
  [
    "MiniMax",
    "too many requests, in the stream",
    { events: [{ choices: null, base_resp: { status_code: 1002, status_msg: "rate limit" } }] },
    { failure: /busy/ },
  ],
  [
    "MiniMax",
    "a filtered answer",
    {
      events: [
        chunk({ content: "Well" }, null, MINIMAX_FRAME),
        whole({ content: "" }, "stop", { base_resp: { status_code: 1027, status_msg: "output new_sensitive" } }),
      ],
    },
    { failure: FILTERED },
  ],
  [
    "MiniMax",
    "a code of its own after text",
    {
      events: [
        chunk({ content: "Well" }, null, MINIMAX_FRAME),
        { ...chunk({}), choices: null, base_resp: { status_code: 1033, status_msg: "system error" } },
      ],
    },
    { failure: /reported an error\. system error$/ },
  ],
  [
    "Doubao",
    "reasoning, usage without choices",
    {
      events: [
        chunk({ role: "assistant", content: "", reasoning_content: "Hm." }, null, {
          service_tier: "default",
          usage: null,
        }),
        chunk({ role: "assistant", content: "Yes." }, null, { usage: null }),
        chunk({ role: "assistant", content: "" }, "stop", { usage: null }),
        { ...chunk({}), choices: [], usage: counts(10, 2) },
        DONE,
      ],
    },
    { text: "Yes.", reasoning: "Hm.", usage: COUNTED },
  ],
  [
    "Doubao",
    "a filtered request",
    {
      status: 400,
      body: {
        error: {
          code: "SensitiveContentDetected",
          message: "The request failed because of its content",
          param: "",
          type: "BadRequest",
        },
      },
    },
    { failure: /400\. The request failed because/ },
  ],
  [
    "Qianfan",
    "an end called normal",
    { events: [chunk({ content: "Yes." }), chunk({ content: "" }, "normal"), DONE] },
    { text: "Yes." },
  ],
];
