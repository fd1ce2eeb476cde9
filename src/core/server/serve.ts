import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { identifiesCallers } from "../auth/verify/create-authenticator.ts";
import type { Agent } from "../engine/agent.ts";
import { LISTEN_BACKLOG } from "./access/connections.ts";
import { createHostCheck, externallyReachableHost, isLoopback } from "./access/loopback.ts";
import type { TlsFiles } from "./access/tls.ts";
import { checkServeOptions, isAgent } from "./check-options.ts";
import { openAll } from "./close-stack.ts";
import { isDeclared } from "./config/code-agents.ts";
import { type Core, createCore } from "./core.ts";
import { createGrpcServer, type GrpcEndpoint } from "./grpc/node-grpc.ts";
import { createNodeServer } from "./http/node-http.ts";
import { type ServeOptions, toLog } from "./options.ts";

export type { ServeOptions } from "./options.ts";

interface ServedAgentInfo {
  readonly name: string;
  readonly title: string;
  readonly url: string;
  readonly cardUrl: string;
  readonly isDefault: boolean;
}

export interface DragomanServer {
  /** Base URL, as cards name it. */
  readonly url: string;
  /** Address that the server listens on. */
  readonly host: string;
  /** Port of HTTP that the server listens on; useful with `port: 0`. */
  readonly port: number;
  /** `host:port` of gRPC; undefined if it is not served. */
  readonly grpc: string | undefined;
  /** Description of the store, for logs and messages. */
  readonly store: string;
  /** Name, title, URL and card URL of every agent, and which is the default. */
  readonly agents: readonly ServedAgentInfo[];
  /** Replaces the definition of an agent while the server runs; turns in progress finish with the old one. */
  replace(name: string, agent: Agent): void;
  /**
   * Stops accepting work, lets runs finish (`times.drainMs`), then closes. Open streams end; their readers can
   * resume.
   */
  close(reason?: string): Promise<void>;
  /** Resolves when the server has closed, for any reason. */
  readonly closed: Promise<void>;
}

/** Starts a server in this process. */
export async function serve(options: ServeOptions): Promise<DragomanServer> {
  await checkServeOptions("serve", options);
  const host = options.host ?? "127.0.0.1";
  const { auth = {} } = options;
  const identifies = options.authenticate !== undefined || identifiesCallers(auth);
  const reached = externallyReachableHost(host, options.publicUrl);
  if (reached !== undefined && !identifies && auth.anonymous !== true) {
    throw new TypeError(
      `"${reached}" can be reached from other machines: configure auth, or set auth: { anonymous: true } to allow anonymous callers.`,
    );
  }
  const publicUrl = options.publicUrl?.replace(/\/+$/, "");
  const mount = (options.path ?? "").replace(/\/+$/, "");
  let url = "";
  let grpcUrl: string | undefined;
  // A custom check may leave callers anonymous.
  const needsCredentials = identifiesCallers(auth) && auth.anonymous !== true;
  const isOwnHost = needsCredentials ? undefined : createHostCheck(host, options.publicUrl);
  let starting = true;
  const local = isLoopback(host) && publicUrl === undefined;
  const where = {
    baseUrl: () => publicUrl ?? url,
    grpc: () => grpcUrl,
    local,
    isStarting: () => starting,
    endpoint: { publicUrl, mount },
  };
  return openAll(async (closing) => {
    let server: Server | undefined;
    let grpc: GrpcEndpoint | undefined;
    const tls = await openTls(options);
    closing.add(() => tls?.close());
    // Responses are sent after everything else has ended, so connections are closed after what was opened later.
    closing.add(() => Promise.all([server && endConnections(server), grpc?.close(CLOSE_GRACE_MS)]));
    const core = await createCore(options, where, isOwnHost);
    closing.add(() => core.close(starting ? 0 : undefined));
    server = createNodeServer(core.http, { limits: core.connections, tls, takeUpgrade: core.upgrade, mount });
    const { port } = await listen(server, host, options.port ?? 4000);
    url = `${tls === undefined ? "http" : "https"}://${urlHost(host)}:${port}${mount}`;
    grpc = await openGrpc(options, core, host, port, tls);
    if (grpc !== undefined) grpcUrl = options.grpcPublicUrl ?? `${new URL(publicUrl ?? url).hostname}:${grpc.port}`;
    starting = false;
    const announcements: { close(): Promise<void> }[] = [];
    const close = async () => {
      server?.close();
      grpc?.drain();
      // At the same time: no one should find the agents any more while running tasks are waited for.
      await Promise.all([...announcements.map((one) => one.close()), closing.close()]);
    };
    const running = runningServer(options, core, close, { url: publicUrl ?? url, host, port, grpc: grpcUrl });
    announcements.push(...core.parts.flatMap((part) => part.listening?.(running.agents) ?? []));
    return running;
  });
}

/** Client certificates require TLS, and are verified against the authorities of `auth.mtls`. */
async function openTls(options: ServeOptions): Promise<TlsFiles | undefined> {
  const { tls, auth: { mtls } = {} } = options;
  if (tls === undefined) {
    if (mtls === undefined) return undefined;
    throw new TypeError("auth.mtls needs tls: client certificates are shown when a TLS connection is made.");
  }
  if (mtls !== undefined && tls.ca !== undefined) {
    throw new TypeError("auth.mtls.ca and tls.ca are both given; auth.mtls needs only its own.");
  }
  const all = mtls === undefined ? tls : { ...tls, ca: mtls.ca, requestClientCertificate: true };
  const log = toLog(options);
  const { openTlsFiles } = await import("./access/tls.ts");
  return openTlsFiles(all, options.baseDirectory ?? process.cwd(), log);
}

/** Default port: the one after that of HTTP, or any free one if that was 0. */
function openGrpc(
  options: ServeOptions,
  core: Core,
  host: string,
  port: number,
  tls: TlsFiles | undefined,
): Promise<GrpcEndpoint | undefined> {
  if (options.grpcPort === false) return Promise.resolve(undefined);
  const next = options.port === 0 || port === MAX_PORT ? 0 : port + 1;
  const services = core.dialects.flatMap(({ name: dialect, serving: { rpc } }) =>
    rpc === undefined ? [] : [{ dialect, serving: rpc }],
  );
  return createGrpcServer({
    ...core.http,
    services,
    host,
    port: options.grpcPort ?? next,
    gate: core.gate,
    maxMessageBytes: core.http.maxBodyBytes,
    connections: core.connections,
    tls,
  });
}

const MAX_PORT = 65_535;

function runningServer(
  options: ServeOptions,
  core: Core,
  close: () => Promise<void>,
  where: Pick<DragomanServer, "url" | "host" | "port" | "grpc">,
): DragomanServer {
  const names = [...core.services.keys()];
  const defaultName = options.default ?? names[0];
  let closing: Promise<void> | undefined;
  let resolveClosed = () => {};
  const closed = new Promise<void>((resolve) => {
    resolveClosed = resolve;
  });
  return {
    ...where,
    store: core.store.description,
    agents: names.map((name) => {
      const url = `${where.url}/agents/${encodeURIComponent(name)}`;
      const title = core.services.get(name)?.profile.name ?? name;
      return { name, title, url, cardUrl: `${url}/.well-known/agent-card.json`, isDefault: name === defaultName };
    }),
    replace(name, agent) {
      if (!core.services.has(name)) throw new TypeError(`replace: there is no agent "${name}".`);
      if (isDeclared(agent)) throw new TypeError("replace: takes what defineAgent returns; restart for other kinds.");
      if (!isAgent(agent)) throw new TypeError("replace: the agent must be what defineAgent returns.");
      core.replaceAgent(name, agent);
    },
    close() {
      closing ??= close().then(resolveClosed);
      return closing;
    },
    closed,
  };
}

/** Time to finish responses; connections still open afterwards are destroyed. */
const CLOSE_GRACE_MS = 1_000;

function endConnections(server: Server): Promise<void> {
  server.closeIdleConnections();
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
    server.close(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function listen(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host, backlog: LISTEN_BACKLOG }, () => {
      server.off("error", reject);
      resolve(server.address() as AddressInfo);
    });
  });
}

/**
 * A wildcard address cannot be called: cards then contain an address that other machines can reach. IPv6 needs brackets
 * in a URL.
 */
function urlHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return externalAddress() ?? "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}

function externalAddress(): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return addresses.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
}
