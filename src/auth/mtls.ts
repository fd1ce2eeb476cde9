import type { PeerCertificate } from "../wire/peer-certificate.ts";
import { CredentialsError, isOwnerName, toCaller, type Verifier } from "./contract.ts";

/** The names in a certificate that can say who its holder is. */
export const CERTIFICATE_NAMES = ["uri", "email", "dns", "cn"] as const;
export type CertificateName = (typeof CERTIFICATE_NAMES)[number];

const READERS = {
  uri: ({ uris }) => uris[0],
  email: ({ emails }) => emails[0],
  dns: ({ dnsNames }) => dnsNames[0],
  cn: ({ commonName }) => commonName,
} as const satisfies Record<CertificateName, (certificate: PeerCertificate) => string | undefined>;

/**
 * Certificates that were verified when the connection was made. `name` is where the owner stands; unless given, the
 * first of all there is, so that a certificate with an identity of its own is not known by its common name.
 */
export function createCertificateVerifier(name: CertificateName | undefined, now: () => number): Verifier {
  const names = name === undefined ? CERTIFICATE_NAMES : [name];
  return {
    verify({ certificate }) {
      if (certificate === undefined) return undefined;
      if (!certificate.verified) throw new CredentialsError("wrong", "The client certificate is not trusted here.");
      if (!(certificate.expires > now())) throw new CredentialsError("wrong", "The client certificate has expired.");
      const owner = names.map((one) => READERS[one](certificate)).find((found) => found !== undefined);
      if (!isOwnerName(owner)) throw new CredentialsError("wrong", "The client certificate does not say whose it is.");
      return { ...toCaller(owner, undefined), expires: certificate.expires };
    },
    schemes: { mtls: { mtlsSecurityScheme: {} } },
    challenge: { scheme: "ClientCertificate" },
  };
}
