/** Agents that are participants of chat rooms need an account there. */

import { type Fields, fieldsOf, listOf } from "../../../core/model/json.ts";
import type { Finding } from "../../../core/yaml/problems.ts";
import { parseChatAddress } from "../a2a-lite/address.ts";
import { NETWORKS } from "../networks/networks.ts";

/** `section` has the entries of `channels`. */
export function checkPeerAgents(section: unknown, agents: Fields): readonly Finding[] {
  const entries = listOf(section).map(fieldsOf);
  return Object.entries(agents).flatMap(([name, agent]) => {
    const { remote } = fieldsOf(agent);
    const address = typeof remote === "string" ? parseChatAddress(remote) : undefined;
    if (address === undefined) return [];
    const message = findProblem(address, entries);
    return message === undefined ? [] : [{ path: ["agents", name, "remote"], message }];
  });
}

function findProblem(
  { network: wanted, room }: { readonly network: string; readonly room: string },
  entries: readonly Fields[],
): string | undefined {
  const network = NETWORKS.find(({ name }) => name === wanted);
  if (network === undefined) {
    return `there is no network "${wanted}"; the networks are ${NETWORKS.map(({ name }) => name).join(", ")}`;
  }
  const accounts = entries.map((entry) => entry[wanted]).filter((account) => account !== undefined);
  if (accounts.length === 0) return `needs an entry of channels with ${wanted}, over which it is called`;
  const settings = accounts.map((account) => network.settings.safeParse(account));
  // What is wrong with them is reported where they are.
  const isThere = settings.some(({ data, success }) => !success || (network.rooms(data)?.includes(room) ?? true));
  return isThere ? undefined : `no entry of channels with ${wanted} is in the room ${room}`;
}
