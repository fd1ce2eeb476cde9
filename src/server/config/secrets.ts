import { type AuthOptions, secretsOf } from "../../auth/verify/create-authenticator.ts";
import { isSecretName } from "../logging/redact.ts";
import type { AgentSource, DragomanConfig } from "./config.ts";
import { type SectionOptions, sectionSecrets } from "./sections.ts";

interface SecretSources extends SectionOptions {
  readonly auth?: AuthOptions;
  readonly push?: boolean | { readonly hmac?: { readonly secret: string } | undefined };
}

/** What is known to be secret and therefore hidden wherever it would be written. */
export function collectSecrets({ auth = {}, push, ...sections }: SecretSources): readonly string[] {
  const hmac = typeof push === "object" ? push.hmac : undefined;
  return [...secretsOf(auth), ...(hmac === undefined ? [] : [hmac.secret]), ...sectionSecrets(sections)];
}

/** The same of a whole configuration, with what dial-in agents authenticate by and what programs have in their environment. */
export function collectConfigSecrets(config: DragomanConfig): readonly string[] {
  return [...collectSecrets(config), ...[...config.agents.values()].flatMap(({ source }) => secretsOfSource(source))];
}

function secretsOfSource(source: AgentSource): readonly string[] {
  if (source.kind === "link") return [source.sk, source.apiKey].filter((secret) => secret !== undefined);
  if (source.kind !== "process") return [];
  return Object.entries(source.env).flatMap(([name, value]) => (isSecretName(name) ? [value] : []));
}
