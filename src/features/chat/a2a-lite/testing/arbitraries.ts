/** Messages and posts for property tests. */

import fc from "fast-check";
import { omitUndefined } from "../../../../core/model/json.ts";
import { type LiteMessage, STATES, TERMINAL_STATES } from "../message.ts";

/** What is special somewhere in the grammar, and characters of several lengths in UTF-8 and UTF-16. */
const fragment = fc.constantFrom(
  ...[
    "a",
    "Z",
    "0",
    " ",
    "  ",
    "\n",
    "\r",
    "\r\n",
    "\t",
    "\\",
    "\\\\",
    "\\n",
    '"',
    "'",
    "“",
    "”",
    "＂",
    "=",
    "＝",
    ",",
  ],
  ...[
    "[",
    "]",
    "［",
    "］",
    ":",
    "：",
    "[A2A:",
    "［Ａ２Ａ：",
    "\n[a2a:task id=1]",
    "\\[A2A:ack task=1]",
    "[A2A:result",
    "> ",
  ],
  ...[
    "[附件: x.md]",
    "\n[attachment: y.md]",
    "\n［附件：z］\n",
    "\\[附件: x]",
    "```",
    "\n```\n",
    "~~~",
    "`",
    "@bot ",
    "@x",
    "/c",
    "<@1>",
    "n: ",
  ],
  ...[
    "茶",
    "é",
    "é",
    "😀",
    "👨‍👩‍👧",
    "🇨🇳",
    "\u200b",
    "\u202e",
    "\u2066",
    "\ufeff",
    "\u00a0",
    "\u3000",
    "\u2028",
    "\0",
    "\u0085",
  ],
  ...["\v", "\f", "\u0007", "\ufffe", "\uffff", "\u030a", "【A2A：", "】", "**[A2A:", "**", "* ", "，"],
  ...["\ud83d", "\ude00", "id=1", "state=working", "part=1/2", "mid=m", "hops=9", "__proto__"],
);

/** Any text, most of it hostile to the grammar. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.array(fragment, { maxLength: 12, size: "max" }).map((fragments) => fragments.join("")),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 40 }),
);

const HIDDEN = /[\p{C}\p{Zl}\p{Zp}]/u;
const id = fc
  .oneof(fc.uuid(), anyText)
  .map((text) => text.toWellFormed())
  .filter((text) => text.trim() !== "" && text.length <= 256 && !HIDDEN.test(text));

const value = anyText.map((text) => text.toWellFormed());
const name = value.map((text) => text.trim()).filter((text) => text !== "");
const names = fc.array(name, { maxLength: 3 });
const KNOWN =
  /^(?:id|task|skill|priority|accept|state|progress|eta|artifacts|reason|to|from|hops|mid|part|__proto__)$/i;
const key = fc.stringMatching(/^[\w.-]{1,8}$/).filter((any) => !KNOWN.test(any));
const maybe = fc.option(value, { nil: undefined });

const fields = fc.record({
  body: value,
  attachments: names,
  to: maybe,
  from: maybe,
  hops: fc.option(fc.nat({ max: 999_999_999 }), { nil: undefined }),
  others: fc.dictionary(key, value, { maxKeys: 3, noNullPrototype: true }),
});

const specific = fc.oneof(
  fc.record({ type: fc.constantFrom("discover" as const, "card" as const) }),
  fc.record({ type: fc.constant("task" as const), id, skill: maybe, priority: maybe, accept: maybe }),
  fc.record({
    type: fc.constant("status" as const),
    task: id,
    state: fc.constantFrom(...STATES),
    progress: maybe,
    eta: maybe,
  }),
  fc.record({
    type: fc.constant("result" as const),
    task: id,
    state: fc.constantFrom(...TERMINAL_STATES),
    artifacts: names,
  }),
  fc.record({ type: fc.constant("cancel" as const), task: id, reason: maybe }),
  fc.record({ type: fc.constant("ack" as const), task: id }),
);

export const anyMessage: fc.Arbitrary<LiteMessage> = fc
  .tuple(fields, specific)
  .map(([common, own]) => omitUndefined({ ...common, ...own }) as LiteMessage);
