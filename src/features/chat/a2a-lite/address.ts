/** Addresses of participants in chat rooms: `a2a-lite:<network>/<room>#<peer>`. */

export interface PeerAddress {
  /** Name of the network, e.g. `irc`. */
  readonly network: string;
  readonly room: string;
  /** Id of the participant on the network. */
  readonly peer: string;
}

const SCHEME = "a2a-lite:";
const NETWORK = /^[a-z][a-z0-9-]{0,31}$/;

/** Undefined for anything else. Rooms may begin with `#` and have slashes. Room and peer may be percent-encoded. */
export function parsePeerAddress(address: string): PeerAddress | undefined {
  if (!address.startsWith(SCHEME)) return undefined;
  const slash = address.indexOf("/");
  const hash = address.lastIndexOf("#");
  const network = address.slice(SCHEME.length, slash);
  const room = decodePercent(address.slice(slash + 1, hash));
  const peer = decodePercent(address.slice(hash + 1));
  if (slash === -1 || hash <= slash || !NETWORK.test(network) || room === "" || peer === "") return undefined;
  return { network, room, peer };
}

export function formatPeerAddress({ network, peer, room }: PeerAddress): string {
  return `${SCHEME}${network}/${room.replaceAll("%", "%25")}#${peer.replaceAll(/[%#]/g, encodeURIComponent)}`;
}

/** A percent sign that encodes nothing is itself. */
function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
