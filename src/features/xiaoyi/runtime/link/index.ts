import type { CallableDialect } from "../../../../core/dialects/contract.ts";
import { can } from "../../codec/abilities.ts";
import { LOSSES } from "../../codec/link-losses.ts";
import { linkCalling } from "./call/call-link.ts";
import { DIALECT_NAME } from "./options.ts";

export { LinkAgent } from "./bind-link.ts";
export { LINK_PEER_CAN, linkCalling } from "./call/call-link.ts";
export { DIALECT_NAME } from "./options.ts";

/** Huawei's assistant Xiaoyi over links that agents dial. No card is published for it: its console issues the ids. */
export const xiaoyiLink: CallableDialect = {
  name: DIALECT_NAME,
  can,
  losses: Object.values(LOSSES),
  calling: [linkCalling],
};
