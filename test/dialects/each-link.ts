/** For dialects whose conversations end with their link. */
import type { CodecTools, LinkCaller, LinkCalling, LinkServing, ServeContext } from "../../src/dialects/contract.ts";
import { ProtocolError } from "../../src/model/errors.ts";
import type { Link } from "../../src/wire/link.ts";

export function servingEach(serve: (link: Link, context: ServeContext) => Promise<void>): LinkServing {
  return {
    open: (context) => ({
      async serve(link) {
        await serve(link, context);
        return link.closed;
      },
      resume: async () => {},
      drain: async () => {},
      close() {},
    }),
  };
}

export type OneLinkCaller = Pick<LinkCaller, "dispatch">;

export function callingEach(open: (link: Link, tools: CodecTools) => OneLinkCaller): LinkCalling {
  return {
    carrier: "link",
    open(tools) {
      let current: { readonly link: Link; readonly caller: OneLinkCaller } | undefined;
      return {
        attach(link) {
          current?.link.close();
          current = { link, caller: open(link, tools) };
          return link.closed;
        },
        async dispatch(operation, signal) {
          if (current === undefined) throw new ProtocolError("UNAVAILABLE", "There is no link.");
          return current.caller.dispatch(operation, signal);
        },
        close: (code, reason) => current?.link.close(code, reason),
      };
    },
  };
}
