import { type AuthOptions, secretsOf } from "../auth/create.ts";
import type { AgentSource, DragomanConfig } from "./config/index.ts";
import { isSecretName } from "./redact.ts";
import type { XiaoyiOptions } from "./xiaoyi/options.ts";

interface Configured {
  readonly auth?: AuthOptions;
  readonly push?: boolean | { readonly hmac?: { readonly secret: string } | undefined };
  readonly xiaoyi?: XiaoyiOptions;
}

/** What is known to be secret and therefore hidden wherever it would be written. */
export function knownSecrets({ auth = {}, push, xiaoyi = {} }: Configured): readonly string[] {
  const hmac = typeof push === "object" ? push.hmac : undefined;
  const { http = [], links = [] } = xiaoyi;
  const given = [
    hmac?.secret,
    ...http.flatMap(({ sk, apiKey, oauth, account, upload }) => [
      sk,
      apiKey,
      oauth?.clientSecret,
      upload?.apiKey,
      typeof account === "object" ? account.clientSecret : undefined,
    ]),
    ...links.flatMap(({ sk, apiKey }) => [sk, apiKey]),
    ...[...http, ...links].map((entry) => entry.push?.sk),
  ];
  return [...secretsOf(auth), ...given.filter((secret) => secret !== undefined)];
}

/** The same of a whole configuration, with what dial-in agents authenticate by and what programs have in their environment. */
export function secretsOfConfig(config: DragomanConfig): readonly string[] {
  return [...knownSecrets(config), ...[...config.agents.values()].flatMap(({ source }) => secretsOfSource(source))];
}

function secretsOfSource(source: AgentSource): readonly string[] {
  if (source.kind === "link") return [source.sk, source.apiKey].filter((secret) => secret !== undefined);
  if (source.kind !== "process") return [];
  return Object.entries(source.env).flatMap(([name, value]) => (isSecretName(name) ? [value] : []));
}
