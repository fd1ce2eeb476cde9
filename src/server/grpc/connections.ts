import type { Socket } from "node:net";
import type { PeerCertificate } from "../../wire/peer-certificate.ts";
import { peerCertificateOf } from "../peer-certificate.ts";
import type { Sender } from "./envelope.ts";

interface Ends {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

/** The sockets of an endpoint, and the certificates shown over them: the library tells of a call only where it is from. */
export class Connections {
  readonly #sockets = new Set<Socket>();
  readonly #certificates = new Map<string, PeerCertificate>();

  /** Of a socket before any handshake. */
  opened(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  /** Of one over which calls come. */
  ready(socket: Socket): void {
    const certificate = peerCertificateOf(socket);
    if (certificate === undefined) return;
    const place = placeOf(socket);
    this.#certificates.set(place, certificate);
    socket.once("close", () => {
      if (this.#certificates.get(place) === certificate) this.#certificates.delete(place);
    });
  }

  senderOf(ends: Ends): Sender {
    const certificate = this.#certificates.size === 0 ? undefined : this.#certificates.get(placeOf(ends));
    return { address: ends.remoteAddress, certificate };
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

function placeOf({ remoteAddress, remotePort }: Ends): string {
  return `${remoteAddress} ${remotePort}`;
}
