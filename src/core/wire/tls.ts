/** The certificate by which a peer has shown itself when the connection was made. */
export interface PeerCertificate {
  /** Signed, through whatever chain, by an authority the server is configured to trust. */
  readonly verified: boolean;
  readonly commonName: string | undefined;
  readonly uris: readonly string[];
  readonly dnsNames: readonly string[];
  readonly emails: readonly string[];
  /** Milliseconds since the epoch; connections may outlive their certificates. */
  readonly expires: number;
}

/** What is used of the form in which Node shows a certificate. */
interface NodeCertificate {
  readonly subject?: { readonly CN?: string | string[] | undefined } | undefined;
  readonly subjectaltname?: string | undefined;
  readonly valid_to?: string | undefined;
}

export function toPeerCertificate(certificate: NodeCertificate, verified: boolean): PeerCertificate {
  const { subject, subjectaltname, valid_to } = certificate;
  const names = parseAlternativeNames(subjectaltname ?? "");
  const named = (kind: string) => names.filter((name) => name.kind === kind).map(({ value }) => value);
  // Several common names in one subject identify no one.
  const commonName = typeof subject?.CN === "string" ? subject.CN : undefined;
  return {
    verified,
    commonName,
    uris: named("URI"),
    dnsNames: named("DNS"),
    emails: named("email"),
    expires: Date.parse(valid_to ?? ""),
  };
}

interface AlternativeName {
  readonly kind: string;
  readonly value: string;
}

const NAME_KIND = /^([A-Za-z][A-Za-z ]*):/;

/**
 * Node joins the names by commas and writes those as JSON texts that could be taken for several. Code that splits at
 * commas without looking lets a certificate claim names that it does not have. A list that cannot be read has no names.
 */
export function parseAlternativeNames(list: string): readonly AlternativeName[] {
  const names: AlternativeName[] = [];
  let rest = list;
  while (rest !== "") {
    const kind = NAME_KIND.exec(rest)?.[1];
    if (kind === undefined) return [];
    rest = rest.slice(kind.length + 1);
    const quoted = /^"(?:[^"\\]|\\.)*"/.exec(rest)?.[0];
    if (quoted === undefined && rest.startsWith('"')) return [];
    const written = quoted ?? rest.slice(0, endOfPlain(rest));
    const value = quoted === undefined ? written : parseQuoted(quoted);
    if (value === undefined) return [];
    names.push({ kind, value });
    rest = rest.slice(written.length);
    if (rest === "") break;
    if (!rest.startsWith(", ")) return [];
    rest = rest.slice(2);
  }
  return names;
}

function endOfPlain(text: string): number {
  const comma = text.indexOf(", ");
  return comma < 0 ? text.length : comma;
}

function parseQuoted(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** How the peer's certificate is verified; default: by host name and the known authorities. */
export interface TlsVerifyOptions {
  /** The host name of the certificate, if it differs from that of the URL. */
  readonly servername?: string;
  /** SHA-256 of the one certificate that is accepted, in hexadecimal, with or without colons. Its name and its authority do not matter then. */
  readonly fingerprint?: string;
  /** Accept any certificate: anyone in between can read and change everything. */
  readonly insecure?: boolean;
  /** Authorities in PEM form, instead of the known ones. */
  readonly ca?: string;
}
