/** What a server needs besides its store and fails without: certificates, keys, the file for records. */
import { X509Certificate } from "node:crypto";
import { constants } from "node:fs";
import { access, readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { dirname } from "node:path";
import { createSecureContext } from "node:tls";
import { loadSigningKey, type SigningKeyOptions } from "../auth/signing-key.ts";
import { isCode } from "../model/system-error.ts";
import type { DragomanConfig } from "../server/config/index.ts";
import { type Check, messageOf } from "./doctor-checks.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** Sooner than this a certificate should have been renewed by whatever renews it. */
const RENEWED_BEFORE_DAYS = 14;

export async function checkFiles(config: DragomanConfig, now: number): Promise<readonly Check[]> {
  const { server, auth, signing, push, audit } = config;
  return [
    ...(server.tls === undefined ? [] : [await checkCertificate(server.tls, server.publicUrl, now)]),
    ...(auth.mtls === undefined ? [] : [await checkAuthorities(auth.mtls.ca)]),
    ...(signing === undefined ? [] : [await checkKey("signing", signing)]),
    ...(push.jwt === undefined ? [] : [await checkKey("push.jwt", push.jwt)]),
    ...(audit === undefined ? [] : [await checkAudit(audit)]),
  ];
}

interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

async function checkCertificate(files: CertificateFiles, publicUrl: string | undefined, now: number): Promise<Check> {
  const name = "server.tls";
  try {
    const [cert, key] = await Promise.all([readFile(files.cert, "utf8"), readFile(files.key, "utf8")]);
    createSecureContext({ cert, key });
    return { name, ...judged(new X509Certificate(cert), publicUrl, now) };
  } catch (error) {
    return { name, status: "failed", detail: messageOf(error) };
  }
}

function judged(certificate: X509Certificate, publicUrl: string | undefined, now: number): Omit<Check, "name"> {
  const { validFrom, validTo } = certificate;
  const [begins, ends] = [Date.parse(validFrom), Date.parse(validTo)];
  const until = `valid until ${new Date(ends).toISOString().slice(0, 10)}`;
  if (now > ends) return { status: "failed", detail: `the certificate expired: ${until}` };
  if (now < begins) return { status: "failed", detail: `the certificate is not valid before ${validFrom}` };
  const host = publicUrl === undefined ? undefined : new URL(publicUrl).hostname.replace(/^\[(.*)\]$/, "$1");
  if (host !== undefined && !isFor(certificate, host)) {
    return { status: "warning", detail: `the certificate is not for ${host}, where callers are told to call` };
  }
  const soon = ends - now < RENEWED_BEFORE_DAYS * DAY_MS;
  return soon
    ? { status: "warning", detail: `the certificate should be renewed: ${until}` }
    : { status: "ok", detail: until };
}

function isFor(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
}

async function checkAuthorities(file: string): Promise<Check> {
  const name = "auth.mtls.ca";
  try {
    const ca = await readFile(file, "utf8");
    createSecureContext({ ca });
    const { subject } = new X509Certificate(ca);
    return { name, status: "ok", detail: subject.replaceAll("\n", ", ") };
  } catch (error) {
    return { name, status: "failed", detail: messageOf(error) };
  }
}

async function checkKey(name: string, options: SigningKeyOptions): Promise<Check> {
  try {
    const { alg, kid } = await loadSigningKey(options);
    return { name, status: "ok", detail: `${kid}, ${alg}` };
  } catch (error) {
    return { name, status: "failed", detail: messageOf(error) };
  }
}

/** Looks without writing: an empty record would be one, too. */
async function checkAudit({ file, required }: { readonly file: string; readonly required: boolean }): Promise<Check> {
  const name = "audit";
  try {
    await access(file, constants.W_OK).catch((error: unknown) => {
      if (!isCode(error, "ENOENT")) throw error;
      return access(dirname(file), constants.W_OK | constants.X_OK);
    });
    return { name, status: "ok", detail: `${file} can be written` };
  } catch (error) {
    const consequence = required ? "nothing will be served" : "nothing will be recorded";
    const detail = `${consequence}: ${messageOf(error)}`;
    return { name, status: required ? "failed" : "warning", detail };
  }
}
