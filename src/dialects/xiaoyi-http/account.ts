/** Users who log in: `authorize` and `deauthorize`. */

import { invalidParams, ProtocolError } from "../../model/errors.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Message } from "../../model/message.ts";
import type { CodecTools } from "../contract.ts";
import { isRecord } from "../shared/proto/json-reading.ts";
import type { HeardMessage } from "../xiaoyi/decode.ts";
import { xiaoyiMark } from "../xiaoyi/marks.ts";
import { phoneText } from "../xiaoyi/phone-texts.ts";
import type { Entry } from "./entry.ts";
import { VERSION } from "./version.ts";

export async function authorize(
  params: unknown,
  { accounts, language }: Entry,
  ids: CodecTools["ids"],
): Promise<object> {
  if (accounts === undefined) {
    throw new ProtocolError("UNSUPPORTED_OPERATION", phoneText(language, "loginNotOffered"));
  }
  const { authCode } = dataIn(params);
  if (typeof authCode !== "string" || authCode === "") {
    throw invalidParams("params.message.parts[0].data.authCode", "is required");
  }
  const account = await accounts.exchange(authCode);
  const agentLoginSessionId = ids.context();
  await accounts.bindings.keep(agentLoginSessionId, account);
  return { version: VERSION, agentLoginSessionId };
}

/** A login that is not known is one that is over already. */
export async function deauthorize(params: unknown, { accounts }: Entry): Promise<object> {
  const { agentLoginSessionId } = dataIn(params);
  if (typeof agentLoginSessionId === "string") await accounts?.bindings.forget(agentLoginSessionId);
  return { version: VERSION };
}

/** Of the first part of the message. */
function dataIn(params: unknown): Readonly<Record<string, unknown>> {
  const message = isRecord(params) ? params.message : undefined;
  const parts = isRecord(message) ? message.parts : undefined;
  const [first] = Array.isArray(parts) ? parts : [];
  return isRecord(first) && isRecord(first.data) ? first.data : {};
}

/** The message with what is known of the user. A login that is over is not passed on: nobody vouches for it. */
export async function withAccount(heard: HeardMessage, { accounts }: Entry): Promise<Message> {
  const { loginSessionId, message } = heard;
  if (loginSessionId === undefined || accounts === undefined) return message;
  const account = await accounts.bindings.find(loginSessionId);
  const { agentLoginSessionId, ...others } = xiaoyiMark(message.metadata) ?? {};
  const mark: JsonObject = account === undefined ? others : { ...others, agentLoginSessionId: loginSessionId, account };
  return { ...message, metadata: { ...message.metadata, [EXTENSIONS.xiaoyi]: mark } };
}
