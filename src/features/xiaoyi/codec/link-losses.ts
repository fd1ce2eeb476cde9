/** Everything that this dialect cannot express. */
import { lossRule, LOSSES as SHARED } from "./abilities.ts";

export const LOSSES = {
  ...SHARED,
  fileWithoutAddress: lossRule(
    "bent",
    "part.raw, to an agent that dialled in",
    "Agents made for the platform fetch files by their address. These bytes have none, because no address of this server is known or too many are offered already, and are sent without.",
  ),
};
