/** Content other than text that agents can send to a device. Other clients show the fallback text. */

import { type JsonObject, omitUndefined } from "../../../core/model/json.ts";
import type { Part } from "../../../core/model/message.ts";
import { fallbackTextOf, reasoningPart, showablePart } from "./metadata.ts";

export interface Shown {
  /** Fallback for clients that cannot show the content. Default: its titles and links. */
  readonly text?: string;
}

function toShowablePart(data: JsonObject, { text }: Shown): Part {
  return showablePart(data, text ?? fallbackTextOf(data));
}

export interface CommandOptions extends Shown {
  readonly namespace: string;
  readonly name: string;
  readonly payload: JsonObject;
}

export interface DeeplinkOptions extends Shown {
  readonly url: string;
  readonly appName: string;
  readonly packageName?: string;
  readonly appType?: "DeepLink" | "OpenHarmony";
}

export interface ActionOptions extends Shown {
  readonly intentName: string;
  readonly bundleName: string;
  readonly intentParam?: JsonObject;
  readonly executeMode?: "background" | "foreground";
  /** Whether the device reports the result, as an event in a later message. */
  readonly needUploadResult?: boolean;
  /** Further members of `executeParam`, e.g. `needUnlock`, `timeOut`, `permissionId`. */
  readonly more?: JsonObject;
}

export interface Card {
  /** The name in the console's output configuration. */
  readonly cardName: string;
  readonly cardData: JsonObject;
  /** Default: below the text. */
  readonly displayType?: "EmbedMarkdown" | "DisplayFaCard";
}

export interface Chip {
  /** The question that is sent when the chip is tapped. */
  readonly text: string;
  readonly domain?: "AIGC" | "documentSummary";
  readonly icon?: string;
}

export interface Reference {
  readonly title: string;
  readonly url: string;
  readonly subTitle?: string;
  readonly imageUrl?: string;
  /** Where the page opens. */
  readonly open?: "xiaoyi" | "browser";
  readonly name?: string;
  readonly source?: string;
}

const MAX_CARDS = 20;
const MAX_CHIP_LENGTH = 64;
const LOCATION = { intentName: "GetCurrentLocation", bundleName: "com.huawei.hmos.aidispatchservice" } as const;

/** A command that the device executes. */
function command({ name, namespace, payload, ...shown }: CommandOptions): Part {
  return toShowablePart({ commands: [{ header: { namespace, name }, payload }] }, shown);
}

/** Opens a page or an app. */
function deeplink({ appName, appType, packageName, url, ...shown }: DeeplinkOptions): Part {
  const payload = { url, appName, ...omitUndefined({ packageName, appType }) };
  return command({ namespace: "Command", name: "Deeplink", payload, ...shown });
}

/** Runs an intent that is registered with the platform under the same names; the platform drops others. */
function action({ bundleName, intentName, intentParam, more, ...options }: ActionOptions): Part {
  const { executeMode = "background", needUploadResult = true, ...shown } = options;
  const executeParam = { executeMode, intentName, bundleName, achieveType: "INTENT", intentParam: intentParam ?? {} };
  const payload = { executeParam: { ...executeParam, ...more }, needUploadResult };
  return command({ namespace: "Common", name: "Action", payload, ...shown });
}

/** Requests the device's location, in WGS84, which arrives as an event in a later message. */
function location(shown: Shown = {}): Part {
  return action({ ...LOCATION, ...shown });
}

function cards(all: readonly Card[], shown: Shown = {}): Part {
  if (all.length === 0 || all.length > MAX_CARDS) throw new RangeError(`There may be 1 to ${MAX_CARDS} cards.`);
  const cardsInfo = all.map(({ cardData, cardName, displayType }) => ({
    cardName,
    cardData,
    ...omitUndefined({ displayType }),
  }));
  return toShowablePart({ cardsInfo }, shown);
}

function card(one: Card, shown: Shown = {}): Part {
  return cards([one], shown);
}

/** Suggested questions, below the answer. */
function chips(all: readonly (Chip | string)[], shown: Shown = {}): Part {
  const chipsList = all.map((one) => toChip(typeof one === "string" ? { text: one } : one));
  return toShowablePart({ chipsInfo: { displayChips: { chipsList } } }, shown);
}

function toChip({ domain = "AIGC", icon, text }: Chip): JsonObject {
  const content = `superlink://vassistant?text=${text.replaceAll(/[%&#+\s]/g, encodeURIComponent)}&startmode=recognize`;
  if ([...text].length > MAX_CHIP_LENGTH) throw new RangeError(`A chip has at most ${MAX_CHIP_LENGTH} characters.`);
  return { content, domain, ...omitUndefined({ icon }) };
}

/** Sources of an answer. */
function references(all: readonly Reference[], shown: Shown = {}): Part {
  return toShowablePart({ reference: { items: all.map(toReference) } }, shown);
}

function toReference({ imageUrl, name, open = "xiaoyi", source, subTitle, title, url }: Reference): JsonObject {
  return {
    params: { name: name ?? title, source: source ?? "agent" },
    card: {
      type: "leftPictureRightText",
      params: {
        title,
        ...omitUndefined({ subTitle }),
        link: { webLink: { startMode: open === "browser" ? 1 : 0, url } },
        ...(imageUrl === undefined ? undefined : { imageInfo: { small: { url: imageUrl } } }),
      },
    },
  };
}

/** Reasoning that is shown while the user waits and collapses when the answer arrives. Other clients do not show it. */
function reasoning(text: string): Part {
  return reasoningPart(text);
}

/** A Markdown link that asks the user to log in; the result arrives as `authorize`. */
function loginLink({
  agentId,
  appId,
  label,
}: {
  readonly label: string;
  readonly appId: string;
  readonly agentId: string;
}): string {
  return `[${label}](superlink://vassistant?hwIdAuth=phone&appId=${encodeURIComponent(appId)}&agentId=${encodeURIComponent(agentId)})`;
}

export const xiaoyi = { command, deeplink, action, location, card, cards, chips, references, reasoning, loginLink };
