import { expect, test } from "vitest";
import type { ExchangeCalling } from "../../dialects/contract.ts";
import { type ErrorCode, ProtocolError } from "../../model/errors.ts";
import { NO_LOSSES } from "../../model/loss.ts";
import type { Outcomes } from "../../model/operation.ts";
import type { ExchangeAnswer, ExchangeCall } from "../../wire/exchange.ts";
import { createHttpTransport } from "./http-transport.ts";
import type { CallSettings } from "./transport.ts";

const SETTINGS: CallSettings = {
  signal: new AbortController().signal,
  timeoutMs: undefined,
  idempotencyKey: undefined,
  extensions: [],
};

/** Says "usual", and "other" if that is not understood; an answer that is a code is that error. */
const calling: ExchangeCalling = {
  carrier: "exchange",
  binding: "X",
  version: "1.0",
  encode: () => ({
    value: { method: "POST", url: "https://x.example", headers: {}, body: "usual" },
    losses: NO_LOSSES,
  }),
  alternative: (call) => ({ ...call, body: "other" }),
  decode<K extends keyof Outcomes>(_: K, { text }: { readonly text: string }) {
    if (text !== "good") throw new ProtocolError(text as ErrorCode, "No.");
    return { value: text as never as Outcomes[K], losses: NO_LOSSES };
  },
  decodeFrame: () => {
    throw new ProtocolError("INVALID_AGENT_RESPONSE", "No.");
  },
};

function answerOf(text: string): ExchangeAnswer {
  async function* chunks() {
    yield Buffer.from(text);
  }
  return { status: 200, headers: new Headers(), text: async () => text, chunks: chunks(), cancel() {} };
}

test.each([
  [{ usual: "good", other: "good" }, "good", ["usual"]],
  [{ usual: "INVALID_PARAMS", other: "good" }, "good", ["usual", "other"]],
  [{ usual: "METHOD_NOT_FOUND", other: "TASK_NOT_FOUND" }, "TASK_NOT_FOUND", ["usual", "other"]],
  [{ usual: "METHOD_NOT_FOUND", other: "INVALID_PARAMS" }, "METHOD_NOT_FOUND", ["usual", "other"]],
  [{ usual: "INTERNAL_ERROR", other: "good" }, "INTERNAL_ERROR", ["usual"]],
] as const)("%j comes to %s: the other form is for those who did not understand", async (answers, expected, said) => {
  const calls: (string | undefined)[] = [];
  const exchange = async ({ body }: ExchangeCall) => {
    calls.push(body);
    return answerOf(answers[body as "usual" | "other"]);
  };
  const transport = createHttpTransport(
    calling,
    { url: "https://x.example", binding: "X", version: "1.0", dialect: "x" },
    exchange,
    {
      headers: {},
      extensions: [],
      timeoutMs: 1_000,
      streamSilenceMs: 1_000,
      tracer: undefined,
      report() {},
      notifyFallback() {},
    },
  );
  const made = await transport.attempt({ kind: "get", id: "t" }, SETTINGS);
  expect(made.ok ? made.value : made.error.code).toBe(expected);
  expect(calls).toEqual(said);
});
