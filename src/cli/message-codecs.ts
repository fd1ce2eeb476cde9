import type { MessageCodec, Version } from "../conformance/index.ts";
import { fromBytes, toBytes, type WireName } from "../dialects/a2a-v1/proto/schema.ts";
import { fromBytes as fromOldBytes, type ProtoName, toBytes as toOldBytes } from "../dialects/a2a-v03/proto/schema.ts";

/** The bytes of gRPC messages, by the tables of the dialects. Names and values come from the suite, which knows them. */
export const MESSAGE_CODECS: Readonly<Record<Version, MessageCodec>> = {
  "1.0": {
    // The request to create a config is the config itself; the dialect has a table of its own for it, with the tenant.
    encode: (message, value) =>
      toBytes(
        message === "TaskPushNotificationConfig" ? "CreateTaskPushNotificationConfigRequest" : (message as WireName),
        value as never,
      ),
    decode: (message, bytes) => fromBytes(message as WireName, bytes),
  },
  "0.3": {
    encode: (message, value) => toOldBytes(message as ProtoName, value as never),
    decode: (message, bytes) => fromOldBytes(message as ProtoName, bytes),
  },
};
