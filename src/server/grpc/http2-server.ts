import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type ServerOptions,
} from "node:http2";
import type { TlsFiles } from "../tls.ts";

/** In plain text unless there is something to secure it with. New certificates are put to use as they come. */
export function createHttp2Server(
  maxConcurrentStreams: number,
  tls: Pick<TlsFiles, "serverOptions" | "onChange"> | undefined,
): Http2Server | Http2SecureServer {
  const options: ServerOptions = {
    settings: { maxConcurrentStreams, enablePush: false },
    // Both are bounded here, by the size of a message and of its metadata; reaching Node's own limits ends connections.
    maxSessionMemory: Number.MAX_SAFE_INTEGER,
    maxSendHeaderBlockLength: Number.MAX_SAFE_INTEGER,
  };
  if (tls === undefined) return createServer(options);
  const server = createSecureServer({ ...options, ...tls.serverOptions });
  tls.onChange((material) => server.setSecureContext(material));
  return server;
}
