import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { type PeerCertificate, toPeerCertificate } from "../wire/peer-certificate.ts";

const known = new WeakMap<TLSSocket, PeerCertificate>();

/** The certificate a peer has shown, if it has; read once for each connection. */
export function peerCertificateOf(socket: Socket): PeerCertificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  let certificate = known.get(socket);
  if (certificate === undefined) {
    const shown = socket.getPeerCertificate();
    // Node shows an empty object where there is none, and nothing at all once the socket is gone.
    if (shown?.raw === undefined) return undefined;
    certificate = toPeerCertificate(shown, socket.authorized);
    known.set(socket, certificate);
  }
  return certificate;
}
