import type { Dialect, LinkServing } from "../contract.ts";
import { can } from "../xiaoyi/abilities.ts";
import { LinkAgent } from "./bind-link.ts";
import { linkCalling } from "./call/call-link.ts";
import { LOSSES } from "./losses.ts";
import type { LinkAgentOptions } from "./options.ts";
import { DIALECT_NAME } from "./version.ts";

export type { OutgoingFile, UploadFile } from "../xiaoyi/upload.ts";
export { linkCalling } from "./call/call-link.ts";
export { DEFAULT_LINK_TIMES, type LinkTimes } from "./options.ts";
export { DIALECT_NAME } from "./version.ts";

/** How one agent is connected. */
type LinkEntry = Omit<LinkAgentOptions, "context">;

export function createLinkServing(entry: LinkEntry): LinkServing {
  return { open: (context) => new LinkAgent({ ...entry, context }) };
}

/** Huawei's assistant Xiaoyi over links that agents dial. Nobody publishes cards for it: its console gives out the ids. */
export function createXiaoyiLink(entry: LinkEntry): Dialect {
  return {
    name: DIALECT_NAME,
    can,
    losses: Object.values(LOSSES),
    serving: { link: createLinkServing(entry) },
    calling: [linkCalling],
  };
}
