import { X509Certificate } from "node:crypto";
import { constants } from "node:fs";
import { access, readFile } from "node:fs/promises";
import { request as ask } from "node:http";
import { request as askSecurely } from "node:https";
import { createServer, isIP } from "node:net";
import { dirname } from "node:path";
import { createSecureContext } from "node:tls";
import { findMissingProgram } from "../../agents/process/find-program.ts";
import { loadSigningKey, type SigningKeyOptions } from "../../auth/signatures/keys.ts";
import { hasErrorCode } from "../../model/errors.ts";
import { hostNameOf } from "../../server/access/loopback.ts";
import type { DragomanConfig } from "../../server/config/index.ts";

export interface Check {
  readonly name: string;
  /** `warning`: works, but perhaps not as expected. `skipped`: there was nothing to check. */
  readonly status: "ok" | "warning" | "failed" | "skipped";
  readonly detail: string;
}

export const ok = (name: string, detail: string): Check => ({ name, status: "ok", detail });
export const warning = (name: string, detail: string): Check => ({ name, status: "warning", detail });
export const failed = (name: string, detail: string): Check => ({ name, status: "failed", detail });
export const skipped = (name: string, detail: string): Check => ({ name, status: "skipped", detail });

/** A check that passes with the detail it returns and fails with the error it throws. */
async function attempt(name: string, check: () => Promise<string | Check>): Promise<Check> {
  try {
    const found = await check();
    return typeof found === "string" ? ok(name, found) : found;
  } catch (error) {
    return failed(name, messageOf(error));
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const DAY_MS = 24 * 60 * 60 * 1_000;
/** Automatic renewal should have replaced a certificate that is this close to its expiry. */
const RENEWAL_WARNING_DAYS = 14;

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

function checkCertificate(
  files: { readonly cert: string; readonly key: string },
  publicUrl: string | undefined,
  now: number,
): Promise<Check> {
  return attempt("server.tls", async () => {
    const [cert, key] = await Promise.all([readFile(files.cert, "utf8"), readFile(files.key, "utf8")]);
    createSecureContext({ cert, key });
    return judgeCertificate("server.tls", new X509Certificate(cert), publicUrl, now);
  });
}

function judgeCertificate(
  name: string,
  certificate: X509Certificate,
  publicUrl: string | undefined,
  now: number,
): Check {
  const { validFrom, validTo } = certificate;
  const [begins, ends] = [Date.parse(validFrom), Date.parse(validTo)];
  const until = `valid until ${new Date(ends).toISOString().slice(0, 10)}`;
  if (now > ends) return failed(name, `the certificate expired: ${until}`);
  if (now < begins) return failed(name, `the certificate is not valid before ${validFrom}`);
  const host = publicUrl === undefined ? undefined : hostNameOf(new URL(publicUrl).hostname);
  if (host !== undefined && !matchesHost(certificate, host)) {
    return warning(name, `the certificate is not for ${host}, the host that the cards name`);
  }
  const soon = ends - now < RENEWAL_WARNING_DAYS * DAY_MS;
  return soon ? warning(name, `the certificate should be renewed: ${until}`) : ok(name, until);
}

function matchesHost(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
}

function checkAuthorities(file: string): Promise<Check> {
  return attempt("auth.mtls.ca", async () => {
    const ca = await readFile(file, "utf8");
    createSecureContext({ ca });
    return new X509Certificate(ca).subject.replaceAll("\n", ", ");
  });
}

function checkKey(name: string, options: SigningKeyOptions): Promise<Check> {
  return attempt(name, async () => {
    const { alg, kid } = await loadSigningKey(options);
    return `${kid}, ${alg}`;
  });
}

/** Does not create the file: an empty audit file would count as one. */
async function checkAudit({ file, required }: { readonly file: string; readonly required: boolean }): Promise<Check> {
  try {
    await access(file, constants.W_OK).catch((error: unknown) => {
      if (!hasErrorCode(error, "ENOENT")) throw error;
      return access(dirname(file), constants.W_OK | constants.X_OK);
    });
    return ok("audit", `${file} can be written`);
  } catch (error) {
    const reason = messageOf(error);
    return required
      ? failed("audit", `nothing will be served: ${reason}`)
      : warning("audit", `nothing will be recorded: ${reason}`);
  }
}

const MIN_NODE_VERSION = [20, 19] as const;

export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [oldestMajor, oldestMinor] = MIN_NODE_VERSION;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return ok("node", version);
  return failed("node", `${version}; ${MIN_NODE_VERSION.join(".")} or newer is required`);
}

export function checkDriver(): Promise<Check> {
  return attempt("sqlite", async () => {
    const { openDriver } = await import("../../store/sqlite/driver.ts");
    const driver = await openDriver(":memory:");
    const row = driver.prepare<{ version: string }>("SELECT sqlite_version() AS version").get();
    driver.close();
    return `SQLite ${row?.version ?? "of unknown version"}`;
  });
}

export async function checkConfig(file: string): Promise<{ readonly check: Check; readonly config?: DragomanConfig }> {
  const { loadConfig } = await import("../../server/config/index.ts");
  try {
    const config = await loadConfig(file);
    const count = config.agents.size === 1 ? "1 agent" : `${config.agents.size} agents`;
    return { check: ok("configuration", `${file}, ${count}`), config };
  } catch (error) {
    return { check: failed("configuration", messageOf(error).replaceAll("\n", "; ")) };
  }
}

/** Checks the HTTP and gRPC ports; default of gRPC: the HTTP port plus one. */
export async function checkPorts({ host, port, grpcPort, tls }: DragomanConfig["server"]): Promise<readonly Check[]> {
  const http = await checkPort(host, port, tls !== undefined);
  const other = grpcPort ?? (port === 0 ? 0 : port + 1);
  if (other === false || other === 0) return [http];
  const problem = await tryListen(host, other);
  const name = "gRPC port";
  if (problem === undefined) return [http, ok(name, `${host}:${other} is free`)];
  // If dragoman already listens on the HTTP port, its gRPC port is in use as well.
  if (http.status === "warning") return [http, warning(name, `${host}:${other} is used by it, too`)];
  return [http, failed(name, describePortProblem(host, other, problem))];
}

/** Whether a server could listen on the port. A dragoman that already listens there is usually expected. */
export async function checkPort(host: string, port: number, secure = false): Promise<Check> {
  if (port === 0) return ok("port", "any free one");
  const problem = await tryListen(host, port);
  if (problem === undefined) return ok("port", `${host}:${port} is free`);
  if (problem === "EADDRINUSE" && (await isDragoman(host, port, secure))) {
    return warning("port", `a dragoman already listens on ${host}:${port}`);
  }
  return failed("port", describePortProblem(host, port, problem));
}

function describePortProblem(host: string, port: number, problem: string): string {
  const why = problem === "EADDRINUSE" ? "is used by another program" : `cannot be used (${problem})`;
  return `${host}:${port} ${why}`;
}

function tryListen(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

const HEALTH_TIMEOUT_MS = 2_000;

/** The certificate is not verified: nothing confidential is sent. */
export function isDragoman(host: string, port: number, secure: boolean): Promise<boolean> {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  const where = { host: reachable, port, path: "/healthz", timeout: HEALTH_TIMEOUT_MS, rejectUnauthorized: false };
  return new Promise((resolve) => {
    const request = (secure ? askSecurely : ask)(where, (answer) => {
      resolve(answer.statusCode === 200);
      answer.destroy();
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(false)).end();
  });
}

export async function checkAgents(config: DragomanConfig): Promise<readonly Check[]> {
  const { buildAgent } = await import("../../server/config/index.ts");
  const checks: Check[] = [];
  for (const [name, agent] of config.agents) {
    const check = await attempt(`agent ${name}`, async () => {
      const { profile } = await buildAgent(name, agent, config);
      const missing = agent.kind === "exec" ? findMissingProgram(agent.source) : undefined;
      return missing === undefined ? `${profile.name} ${profile.version}` : failed(`agent ${name}`, missing);
    });
    checks.push(check);
  }
  return checks;
}
