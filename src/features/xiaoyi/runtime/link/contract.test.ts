import type { Dialect, LinkCaller, LinkCalling } from "../../../../core/dialects/contract.ts";
import { describeDialect } from "../../../../core/dialects/contract-suite.ts";
import { outcomeOfStream } from "../../../../core/dialects/suite/values.ts";
import { ANONYMOUS } from "../../../../core/model/caller.ts";
import { SILENT_LOG } from "../../../../core/model/ports.ts";
import { systemClock } from "../../../../core/server/clock-and-ids.ts";
import type { Link } from "../../../../core/wire/link.ts";
import { isRequestError } from "../../codec/phone-texts.ts";
import { DECODED_ERROR_CODES } from "../../codec/testing/decoded-error-codes.ts";
import { LinkAgent } from "./bind-link.ts";
import { linkCalling, xiaoyiLink } from "./call/call-link.ts";

let made = 0;
const next = (prefix: string) => `${prefix}-${++made}`;

const serving: Dialect["serving"] = {
  async carriers(host) {
    const agent = new LinkAgent({
      agentId: "agent-1",
      servers: ["main"],
      replies: { route: "link", put: async () => true },
      context: host.context("agent", ANONYMOUS),
      artifactId: () => next("artifact"),
      clock: systemClock,
      log: SILENT_LOG,
      mode: "spec",
      language: "en",
      times: { finalAfterMs: 0, paceMs: 0 },
    });
    const accept = { path: "/", admit: () => ({ about: {}, converse: (link: Link) => agent.serve(link, "main") }) };
    return [{ name: "link", accept, settle: (ms) => agent.settle(ms), close: () => agent.close() }];
  },
};

/** Said again under the same id, a message is the same one and is answered once; here each is another. */
const calling: LinkCalling = {
  ...linkCalling,
  open(tools): LinkCaller {
    const caller = linkCalling.open(tools);
    return {
      attach: (link) => caller.attach(link),
      dispatch(operation, call) {
        if (operation.kind !== "send" && operation.kind !== "stream") return caller.dispatch(operation, call);
        return caller.dispatch({ ...operation, message: { ...operation.message, messageId: next("message") } }, call);
      },
    };
  },
};

const dialect: Dialect = { ...xiaoyiLink, serving, calling: [calling] };

describeDialect(dialect, {
  exact: false,
  answersByTask: true,
  streamsOnly: true,
  ofStream: outcomeOfStream,
  hasGeneralMessage: isRequestError,
  // Over HTTP the status says so; here there is no word for it.
  errors: { ...DECODED_ERROR_CODES, UNAUTHENTICATED: "INVALID_REQUEST" },
});
