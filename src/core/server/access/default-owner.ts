import { identifiesCallers } from "../../auth/verify/create-authenticator.ts";
import { ANONYMOUS } from "../../model/caller.ts";
import type { ServeOptions } from "../options.ts";

/**
 * Owner of tasks that come over connections of the server's own, as `xiaoyi:helper`. If all callers are anonymous, so is
 * it, and tasks from a phone or a chat room can be read by other clients.
 */
export function defaultOwner(
  { auth = {}, authenticate }: Pick<ServeOptions, "auth" | "authenticate">,
  place: string,
): (agent: string) => string {
  const identifies = authenticate !== undefined || identifiesCallers(auth);
  return (agent) => (identifies ? `${place}:${agent}` : ANONYMOUS.owner);
}
