import { SILENT_LOG } from "../../model/ports.ts";
import { systemClock } from "../../server/clock-and-ids.ts";
import type { Dialect, LinkCaller, LinkCalling } from "../contract.ts";
import { describeDialect } from "../contract-suite.ts";
import { outcomeOfStream } from "../suite/values.ts";
import { DECODED_ERROR_CODES } from "../xiaoyi/testing/decoded-error-codes.ts";
import { createXiaoyiLink, linkCalling } from "./index.ts";

let made = 0;
const next = (prefix: string) => `${prefix}-${++made}`;

const xiaoyiLink = createXiaoyiLink({
  agentId: "agent-1",
  artifactId: () => next("artifact"),
  clock: systemClock,
  log: SILENT_LOG,
  mode: "spec",
  language: "en",
  times: { finalAfterMs: 0, paceMs: 0 },
});

/** Said again under the same id, a message is the same one and is answered once; here each is another. */
const calling: LinkCalling = {
  ...linkCalling,
  open(tools): LinkCaller {
    const caller = linkCalling.open(tools);
    return {
      attach: (link) => caller.attach(link),
      close: (code, reason) => caller.close(code, reason),
      dispatch(operation, signal) {
        if (operation.kind !== "send" && operation.kind !== "stream") return caller.dispatch(operation, signal);
        return caller.dispatch({ ...operation, message: { ...operation.message, messageId: next("message") } }, signal);
      },
    };
  },
};

const dialect: Dialect = { ...xiaoyiLink, calling: [calling] };

describeDialect(dialect, {
  exact: false,
  answersByTask: true,
  streamsOnly: true,
  ofStream: outcomeOfStream,
  // Over HTTP the status says so; here there is no word for it.
  errors: { ...DECODED_ERROR_CODES, UNAUTHENTICATED: "INVALID_REQUEST" },
});
