/** What is taken from the card of an upstream for the card that is served here. Cards are untrusted input. */

import type { AgentCard, AgentSkill } from "../model/card.ts";
import { EXTENSIONS } from "../model/extensions.ts";
import { canParseUrl } from "../model/url.ts";
import type { AgentDefinition, SkillDefinition } from "./define.ts";

type Description = Omit<AgentDefinition, "run">;

const MAX_NAME_LENGTH = 256;
const MAX_TEXT_LENGTH = 8_192;
const MAX_URL_LENGTH = 2_048;
const MAX_SKILLS = 256;
const MAX_LIST = 64;

/** An upstream may accept anything until its card says otherwise. */
export const ANY_MODE = ["*/*"];

/** `url` is shown to everyone, so it must not contain a login. */
export function describeUpstream(name: string, url: string, card: AgentCard | undefined): Description {
  const upstream = {
    uri: EXTENSIONS.upstream,
    description: "Requests are forwarded to another agent.",
    params: { url },
  };
  const fallback = { name, description: `Forwards to ${url}.`, extensions: [upstream] };
  if (card === undefined) return { ...fallback, inputModes: ANY_MODE, outputModes: ANY_MODE };
  const { defaultInputModes, defaultOutputModes, documentationUrl, iconUrl, provider, skills, version } = card;
  return {
    ...fallback,
    name: shorten(card.name, MAX_NAME_LENGTH) || fallback.name,
    description: shorten(card.description, MAX_TEXT_LENGTH) || fallback.description,
    version: shorten(version, MAX_NAME_LENGTH) || "1.0.0",
    inputModes: modesOf(defaultInputModes) ?? ANY_MODE,
    outputModes: modesOf(defaultOutputModes) ?? ANY_MODE,
    skills: skills.slice(0, MAX_SKILLS).flatMap(toSkill),
    ...(isWebUrl(documentationUrl) && { documentationUrl }),
    ...(isWebUrl(iconUrl) && { iconUrl }),
    ...(provider !== undefined &&
      isWebUrl(provider.url) && {
        provider: { url: provider.url, organization: shorten(provider.organization, MAX_NAME_LENGTH) },
      }),
  };
}

/** Without security requirements, which refer to the schemes of the upstream. */
function toSkill(skill: AgentSkill): readonly SkillDefinition[] {
  const id = shorten(skill.id, MAX_NAME_LENGTH);
  if (id === "") return [];
  const name = shorten(skill.name, MAX_NAME_LENGTH) || id;
  const inputModes = modesOf(skill.inputModes);
  const outputModes = modesOf(skill.outputModes);
  return [
    {
      id,
      name,
      description: shorten(skill.description, MAX_TEXT_LENGTH) || name,
      tags: shortenAll(skill.tags, MAX_NAME_LENGTH),
      examples: skill.examples === undefined ? undefined : shortenAll(skill.examples, MAX_TEXT_LENGTH),
      inputModes,
      outputModes,
    },
  ];
}

function modesOf(modes: readonly string[] | undefined): readonly string[] | undefined {
  const short = shortenAll(modes ?? [], MAX_NAME_LENGTH);
  return short.length === 0 ? undefined : short;
}

function shortenAll(texts: readonly string[], length: number): readonly string[] {
  return texts.slice(0, MAX_LIST).flatMap((text) => shorten(text, length) || []);
}

function shorten(text: string, length: number): string {
  const trimmed = text.trim();
  return trimmed.length <= length ? trimmed : `${trimmed.slice(0, length - 1)}…`;
}

function isWebUrl(url: string | undefined): url is string {
  return url !== undefined && url.length <= MAX_URL_LENGTH && /^https?:\/\//i.test(url) && canParseUrl(url);
}
