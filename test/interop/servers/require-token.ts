/** How operators of the SDKs' servers keep strangers out: before the SDK sees a request. */
import { Metadata, ServerInterceptingCall, type ServerInterceptor, status } from "@grpc/grpc-js";
import type { RequestHandler } from "express";
import { CREDENTIALS } from "../driver.ts";

const CHALLENGE = 'Bearer realm="interop"';

export const demandOverHttp: RequestHandler = ({ headers }, response, next) => {
  if (headers.authorization === CREDENTIALS.Authorization) next();
  else response.status(401).set("WWW-Authenticate", CHALLENGE).json({ error: "Who are you?" });
};

export const demandOverGrpc: ServerInterceptor = (_method, call) =>
  new ServerInterceptingCall(call, {
    start: (next) =>
      next({
        onReceiveMetadata(metadata, passOn) {
          if (metadata.get("authorization")[0] === CREDENTIALS.Authorization) return passOn(metadata);
          const challenge = new Metadata();
          challenge.set("www-authenticate", CHALLENGE);
          call.sendStatus({ code: status.UNAUTHENTICATED, details: "Who are you?", metadata: challenge });
        },
      }),
  });
