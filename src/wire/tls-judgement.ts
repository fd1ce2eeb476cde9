/** How the other side's certificate is judged; by its host's name and the known authorities unless said otherwise. */
export interface TlsJudgement {
  /** The name the certificate must be for, where that is not the one dialled. */
  readonly servername?: string;
  /** SHA-256 of the one certificate that is accepted, in hexadecimal, with or without colons. Its name and its authority do not matter then. */
  readonly fingerprint?: string;
  /** Accept any certificate: whoever stands in between can read and change everything. */
  readonly insecure?: boolean;
  /** Authorities in PEM form, instead of the known ones. */
  readonly ca?: string;
}
