import type { Server, ServerDuplexStream } from "@grpc/grpc-js";
import { RPC_CODES } from "../../wire/rpc.ts";

/** Methods by service. */
export type Offer = ReadonlyMap<string, readonly string[]>;

/**
 * Makes the library's answer to calls nobody serves say what is served. It has no door for that, so the function that
 * finds handlers is replaced; where there is none, the library answers in its own words.
 */
export function explainUnimplemented(server: Server, offer: Offer): void {
  const retrieve: unknown = Reflect.get(server, "_retrieveHandler");
  if (typeof retrieve !== "function") return;
  Reflect.set(server, "_retrieveHandler", (path: string) => retrieve.call(server, path) ?? refusing(path, offer));
}

/** Of the kind that is called before any message has come: callers of a stream may wait for an answer before they ask. */
function refusing(path: string, offer: Offer) {
  return {
    type: "bidi",
    path,
    serialize: (bytes: Buffer) => bytes,
    deserialize: (bytes: Buffer) => bytes,
    func: (call: ServerDuplexStream<Buffer, Buffer>) => {
      call.emit("error", { code: RPC_CODES.UNIMPLEMENTED, details: explain(path, offer) });
    },
  };
}

const MAX_NAME = 200;

/** `path` is `/service/method`. */
export function explain(path: string, offer: Offer): string {
  const [, service = "", method = ""] = path.slice(0, MAX_NAME).split("/");
  const methods = offer.get(service);
  if (methods !== undefined) return `${service} has no method "${method}"; it has ${methods.join(", ")}.`;
  const [served, own] = [[...offer.keys()], service.split(".").at(-1)];
  const alike = served.filter((name) => name.split(".").at(-1) === own);
  const hint = alike.length > 0 ? `it is served as ${alike.join(" and ")}` : `served are ${served.join(", ")}`;
  return `There is no service "${service}" here; ${hint}.`;
}
