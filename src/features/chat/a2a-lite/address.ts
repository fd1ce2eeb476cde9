/** Addresses of participants in chat rooms: `a2a-lite:<network>/<room>#<participant>`. */

export interface ChatAddress {
  /** Name of the network, e.g. `irc`. */
  readonly network: string;
  readonly room: string;
  /** Id of the participant on the network. */
  readonly participant: string;
}

const SCHEME = "a2a-lite:";
const NETWORK = /^[a-z][a-z0-9-]{0,31}$/;

/** Undefined for anything else. Rooms may begin with `#` and have slashes. Room and participant may be percent-encoded. */
export function parseChatAddress(address: string): ChatAddress | undefined {
  if (!address.startsWith(SCHEME)) return undefined;
  const slash = address.indexOf("/");
  const hash = address.lastIndexOf("#");
  const network = address.slice(SCHEME.length, slash);
  const room = decodePercent(address.slice(slash + 1, hash));
  const participant = decodePercent(address.slice(hash + 1));
  if (slash === -1 || hash <= slash || !NETWORK.test(network) || room === "" || participant === "") return undefined;
  return { network, room, participant };
}

export function formatChatAddress({ network, participant, room }: ChatAddress): string {
  return `${SCHEME}${network}/${room.replaceAll("%", "%25")}#${participant.replaceAll(/[%#]/g, encodeURIComponent)}`;
}

/** A percent sign that encodes nothing is itself. */
function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
