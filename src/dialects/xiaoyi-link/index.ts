import type { Dialect, LinkServing } from "../contract.ts";
import { can } from "../xiaoyi/can.ts";
import { linkCalling } from "./call-link.ts";
import { LinkAgent } from "./link-agent.ts";
import { LOSSES } from "./losses.ts";
import type { LinkAgentOptions } from "./options.ts";
import { DIALECT_NAME } from "./version.ts";

export type { OutgoingFile, UploadFile } from "../xiaoyi/uploads.ts";
export { linkCalling } from "./call-link.ts";
export { DEFAULT_LINK_TIMES, type LinkTimes } from "./times.ts";
export { DIALECT_NAME } from "./version.ts";

/** How one agent is connected. */
export type LinkEntry = Omit<LinkAgentOptions, "context">;

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
