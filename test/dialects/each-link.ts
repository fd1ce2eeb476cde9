/** For dialects whose conversations end with their link. */
import type { CodecTools, Dialect, LinkCaller, LinkCalling, ServeContext } from "../../src/core/dialects/contract.ts";
import { ANONYMOUS } from "../../src/core/model/caller.ts";
import { ProtocolError } from "../../src/core/model/errors.ts";
import type { Link } from "../../src/core/wire/link.ts";

export function servingEach(serve: (link: Link, context: ServeContext) => Promise<void>): Dialect["serving"] {
  return {
    async carriers(host) {
      const context = host.context([...host.agents.keys()].join(), ANONYMOUS);
      const converse = async (link: Link) => {
        await serve(link, context);
        return link.closed;
      };
      const accept = { path: "/", admit: () => ({ about: {}, converse }) };
      return [{ name: "each", accept, settle: async () => {}, close() {} }];
    },
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
        async dispatch(operation, call) {
          if (current === undefined) throw new ProtocolError("UNAVAILABLE", "There is no link.");
          return current.caller.dispatch(operation, call);
        },
      };
    },
  };
}
