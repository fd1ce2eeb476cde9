/** Everything that this dialect cannot express. */
import type { LossRule } from "../../model/loss.ts";
import { LOSSES as SHARED } from "../xiaoyi/abilities.ts";

export const LOSSES = {
  ...SHARED,
  fileWithoutAddress: {
    kind: "bent",
    what: "part.raw, to an agent that dialled in",
    reason:
      "Agents made for the platform fetch files by their address. These bytes have none, because no address of this server is known or too many are offered already, and are sent without.",
    direction: "encode",
  },
} as const satisfies Record<string, LossRule>;
