/** Every text that the server itself shows to users, in the languages that an entry can select. */

import type { ErrorCode, ProtocolError } from "../../../core/model/errors.ts";
import { EXTENSIONS } from "../../../core/model/extensions.ts";
import { fieldsOf } from "../../../core/model/json.ts";
import { isPlainText, type Message, type Part } from "../../../core/model/message.ts";
import { parseStatusText, type StatusTextName } from "../../../core/model/status-texts.ts";

export const LANGUAGES = ["zh", "en"] as const;
export type Language = (typeof LANGUAGES)[number];
export const DEFAULT_LANGUAGE: Language = "zh";

/** `{}` is a placeholder for a value. */
type Sentence = Readonly<Record<Language, string>>;

const PHONE_TEXTS = {
  completed: { zh: "任务已完成", en: "The task is completed." },
  failed: { zh: "任务执行异常，请重试", en: "The task failed. Please try again." },
  rejected: { zh: "智能体拒绝了该请求", en: "The agent rejected the request." },
  question: { zh: "任务需要您的回复", en: "The task needs your answer." },
  authorization: { zh: "任务需要您的授权", en: "The task needs your authorization." },
  gone: { zh: "内容已失效", en: "This is no longer available." },
  loginNotOffered: { zh: "该智能体不支持用户登录。", en: "Users cannot log in to this agent." },
  loginRefused: {
    zh: "登录授权码无效或已过期，请重新登录。",
    en: "The login server does not accept this authorization code.",
  },
  loginUnavailable: { zh: "登录服务暂时不可用，请稍后再试。", en: "The login server is not available at the moment." },
  fileMissing: { zh: "[无法获取文件{}：{}]", en: "[The file{} could not be fetched. {}]" },
  fileTooMany: { zh: "一次最多发送 {} 个文件。", en: "There were more than {} files." },
  fileIsPage: { zh: "下载到的是网页，不是文件。", en: "A web page came instead of the file." },
  fileStatus: { zh: "文件服务器返回了状态码 {}。", en: "It was answered with {}." },
  fileNotStored: { zh: "文件无法保存。", en: "It could not be stored." },
  fileAddress: { zh: "文件地址无效。", en: "Its address is not a valid web address." },
  fileForbidden: { zh: "文件地址不允许访问。", en: "Its address must not be reached from here." },
  fileUnreachable: { zh: "文件服务器无法访问。", en: "Its address could not be reached." },
  fileTooLarge: { zh: "文件过大。", en: "It is larger than allowed." },
  fileTimeout: { zh: "下载超时。", en: "It did not come in time." },
  fileUnreadable: { zh: "文件服务器的响应无法识别。", en: "The answer could not be understood." },
} as const satisfies Record<string, Sentence>;

export type PhoneTextName = keyof typeof PHONE_TEXTS;

export function phoneText(language: Language, name: PhoneTextName, ...values: readonly (string | number)[]): string {
  return fillPlaceholders(PHONE_TEXTS[name][language], values);
}

function fillPlaceholders(sentence: string, values: readonly (string | number)[]): string {
  let next = 0;
  return sentence.replaceAll("{}", () => String(values[next++] ?? ""));
}

const UNSUPPORTED = "暂不支持此操作。";
const UNREADABLE = "消息无法处理，可能格式有误或内容过大。";

/** Codes whose messages name fields and methods. In English, the messages of all others are meant for users already. */
const REQUEST_ERRORS_EN: ReadonlyMap<ErrorCode, string> = new Map<ErrorCode, string>([
  ["PARSE_ERROR", "The message could not be read."],
  ["INVALID_REQUEST", "The message could not be read."],
  ["INVALID_PARAMS", "The message is malformed or too large."],
  ["METHOD_NOT_FOUND", "This operation is not supported."],
  ["VERSION_NOT_SUPPORTED", "This operation is not supported."],
  ["EXTENSION_SUPPORT_REQUIRED", "This operation is not supported."],
  ["LOSS_REFUSED", "The message has content that cannot be handled."],
]);

const ERROR_TEXTS_ZH = {
  TASK_NOT_FOUND: "任务不存在或已失效。",
  TASK_NOT_CANCELABLE: "任务已结束，无法取消。",
  PUSH_NOTIFICATION_NOT_SUPPORTED: UNSUPPORTED,
  UNSUPPORTED_OPERATION: UNSUPPORTED,
  CONTENT_TYPE_NOT_SUPPORTED: "智能体不支持这类内容（{}）。",
  INVALID_AGENT_RESPONSE: "智能体返回的内容无法识别，请重试。",
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: UNSUPPORTED,
  EXTENSION_SUPPORT_REQUIRED: UNSUPPORTED,
  VERSION_NOT_SUPPORTED: UNSUPPORTED,
  PARSE_ERROR: UNREADABLE,
  INVALID_REQUEST: UNREADABLE,
  METHOD_NOT_FOUND: UNSUPPORTED,
  INVALID_PARAMS: UNREADABLE,
  INTERNAL_ERROR: "服务内部出错，请稍后重试。",
  UNAUTHENTICATED: "身份验证失败，请重新登录后再试。",
  PERMISSION_DENIED: "没有权限执行此操作。",
  RESOURCE_EXHAUSTED: "当前请求较多，请稍后再试。",
  UNAVAILABLE: "智能体暂时无法回答，请稍后再问一次。",
  IDEMPOTENCY_CONFLICT: "消息与之前的请求冲突，请重新发送。",
  LOSS_REFUSED: "消息中有无法处理的内容。",
} as const satisfies Record<ErrorCode, string>;

const MAX_MEDIA_TYPE = 100;

/** The text of an error for users. Which field of a request is invalid is for developers: see `isRequestError`. */
export function errorText({ code, message, metadata }: ProtocolError, language: Language): string {
  if (language === "en") return REQUEST_ERRORS_EN.get(code) ?? message;
  return fillPlaceholders(ERROR_TEXTS_ZH[code], [metadata?.mediaType?.slice(0, MAX_MEDIA_TYPE) ?? "?"]);
}

/** Whether an error's own message is about a request rather than about what a user wrote. */
export function isRequestError({ code }: ProtocolError): boolean {
  return REQUEST_ERRORS_EN.has(code);
}

/** In English, the texts from the task's log are used. */
const STATUS_TEXTS_ZH = {
  agentFailed: "智能体处理这条消息时出错了，请稍后重试。",
  agentFailedSeeLog: "智能体处理这条消息时出错了，原因见服务器日志。",
  agentTimedOut: "智能体未能在 {} 秒内完成任务。",
  deadlinePassed: "调用方设定的期限已过，智能体未能完成任务。",
  agentDidNotReturn: "智能体陷入死循环，已被终止。",
  agentDidNotStop: "智能体未能及时停止，已被终止。",
  taskTooLong: "智能体输出的内容超过 {} 字节，任务已终止。",
  tasksTooLarge: "服务器上未完成的任务占用内存过多，本任务是其中最大的之一，已终止。",
  partTooLong: "智能体输出的单段内容超过 {} 个字符，任务已终止。",
  processStopped: "服务在任务完成前中断，请重新提问。",
  processStoppedUnasked: "服务在任务完成前中断，且无法向远端智能体查询任务结果，请重新提问。",
  processStoppedOften: "服务在任务完成前中断了 {} 次，请稍后重新提问。",
  programNotStarted: "智能体程序无法启动。",
  programExited: "智能体程序异常退出（代码 {}）。",
  programEnded: "智能体程序被终止（{}）。",
  programTooLong: "智能体程序输出的内容超过 {} 个字符，任务已终止。",
  answerBrokeOff: "智能体的回答中断了，请重试。",
  answerTooLong: "智能体返回的内容超过 {} 个字符。",
  answerTooManyEvents: "智能体发送的消息超过 {} 条。",
  taskContinued: "智能体在任务结束后仍在继续。",
  taskIdChanged: "智能体中途更换了任务编号。",
  taskStateWrong: "智能体返回的任务状态前后矛盾。",
  taskFailed: "智能体的任务失败了。",
  taskCanceled: "智能体的任务已取消。",
  taskRejected: "智能体拒绝了任务。",
  stepTimedOut: "{} 秒内未完成，已超时。",
  runTooLong: "各步骤返回的内容合计超过 {} 个字符。",
  agentCallsItself: "智能体循环调用了自己，暂时无法再次运行。",
  deliveryUnknown: "转发消息的进程已停止，无法确认智能体是否收到消息，请重试。",
  internalError: ERROR_TEXTS_ZH.INTERNAL_ERROR,
  temporarilyUnavailable: ERROR_TEXTS_ZH.UNAVAILABLE,
  taskLost: "远端智能体已没有正在处理的任务，请重新提问。",
  cancelRefused: "已在此取消。远端智能体没有取消它的任务，可能仍在处理。",
  cancelUnconfirmed: "已在此取消。远端智能体尚未返回任务编号，无法确认它是否仍在处理。",
  peerBusy: "智能体繁忙，请稍后再试。",
  peerNotConnected: "智能体不在线，请稍后再试。",
  peerLost: "与智能体的连接已断开，请重试。",
  peerStayedAway: "与智能体的连接已断开，且 {} 秒内未恢复，请稍后再试。",
  peerSilent: "智能体重新连接后没有继续回答，请重试。",
  modelUnreachable: "无法连接语言模型，请稍后再试。",
  modelRefusedKey: "语言模型未接受配置的密钥。",
  modelBusy: "语言模型繁忙，请稍后再试。",
  modelBusyFor: "语言模型繁忙，请在 {} 秒后重试。",
  modelFailed: "语言模型返回了错误（HTTP {}）。",
  modelReported: "语言模型报告了错误。",
  modelStopped: "语言模型终止了回答（{}）。",
  modelBrokeOff: "语言模型的回答中断了，请重试。",
  modelUnreadable: "无法读取语言模型的回答，请重试。",
  modelSaidNothing: "语言模型没有给出回答，请重试。",
  modelSilent: "语言模型 {} 秒内没有响应，请稍后再试。",
  modelAnswerTooLong: "语言模型的回答过长，任务已终止。",
  modelFiltered: "语言模型的内容过滤器终止了回答。",
  modelOutOfTokens: "回答达到 {} 个词元的上限，已被截断。",
  modelCutOff: "回答达到语言模型的长度上限，已被截断。",
  modelTooManyCalls: "语言模型调用其他智能体超过 {} 次，任务已终止。",
} as const satisfies Record<StatusTextName, string>;

/** By state of a workflow's step. In English, the texts of the workflow are used. */
const STEP_TEXTS_ZH = new Map([
  ["started", "步骤“{}”已开始"],
  ["working", "步骤“{}”"],
  ["retrying", "步骤“{}”将重试"],
  ["input-required", "步骤“{}”正在等待"],
  ["auth-required", "步骤“{}”正在等待授权"],
  ["completed", "步骤“{}”已完成"],
  ["failed", "步骤“{}”失败"],
  ["canceled", "步骤“{}”已取消"],
  ["rejected", "步骤“{}”被拒绝"],
  ["skipped", "步骤“{}”已跳过"],
]);

/** Sentences of a workflow about several steps, which have no name of their own. */
const RUN_TEXTS_ZH: readonly (readonly [pattern: RegExp, sentence: string])[] = [
  [/^Completed without steps? (.+)\.$/, "任务已完成，但以下步骤未完成：{}。"],
  [/^Not all agents confirmed the cancellation: (.+)\.$/, "部分智能体未确认取消：{}。"],
];

/** Translates what the server itself wrote into a status; text from an agent is unchanged. */
export function translateStatus(
  { metadata, parts }: Pick<Message, "metadata" | "parts">,
  language: Language,
): readonly Part[] {
  if (language === "en") return parts;
  const { state, step } = fieldsOf(metadata?.[EXTENSIONS.workflow]);
  const translate = (text: string): string =>
    (typeof step === "string" && typeof state === "string" && translateStep(text, step, state)) || translateText(text);
  return parts.map((part) => (isPlainText(part) ? { text: translate(part.text) } : part));
}

/** What a workflow reports of a step; undefined for other texts. */
function translateStep(text: string, step: string, state: string): string | undefined {
  const sentence = STEP_TEXTS_ZH.get(state);
  if (sentence === undefined || !text.startsWith(`Step ${step}`)) return undefined;
  const [, detail] = /^[^:]*: ([\s\S]*)$/.exec(text.slice(`Step ${step}`.length)) ?? [];
  if (detail === undefined) return `${fillPlaceholders(sentence, [step])}。`;
  // What the agent writes while it works is its own.
  return `${fillPlaceholders(sentence, [step])}：${state === "working" ? detail : translateReason(detail)}`;
}

/** Why a step did not complete: perhaps a step of a workflow inside it, and what could not be cancelled then. */
function translateReason(text: string): string {
  const [, failed, refusals] = /^([\s\S]*) Not cancelled: (.+)\.$/.exec(text) ?? [];
  if (failed !== undefined) return `${translateReason(failed)}以下步骤未能取消：${refusals}。`;
  const [, step = "", state = "failed"] = /^Step (\S+?)(?: ([a-z]+))?: /.exec(text) ?? [];
  return (step !== "" && translateStep(text, step, state)) || translateText(text);
}

/** The sentence may be followed by the output of a program. */
function translateText(text: string): string {
  const [line = "", ...rest] = text.split(/(?=\n)/);
  const found = parseStatusText(line);
  if (found !== undefined) return fillPlaceholders(STATUS_TEXTS_ZH[found.name], [found.value]) + rest.join("");
  for (const [pattern, sentence] of RUN_TEXTS_ZH) {
    const [, steps] = pattern.exec(text) ?? [];
    if (steps !== undefined) return fillPlaceholders(sentence, [steps]);
  }
  return text;
}

/** Whether a text is one of this server's generic failure messages, in any language, which carry no information. */
export function isGenericFailure(text: string): boolean {
  return [PHONE_TEXTS.failed, PHONE_TEXTS.rejected].some((sentence) =>
    Object.values(sentence).some((one) => one === text),
  );
}
