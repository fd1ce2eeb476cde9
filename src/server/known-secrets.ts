import { type AuthOptions, secretsOf } from "../auth/create.ts";
import type { DragomanConfig } from "./config/index.ts";
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

/** The same of a whole configuration, which says also what agents show who dial in. */
export function secretsOfConfig(config: DragomanConfig): readonly string[] {
  const sources = [...config.agents.values()].map(({ source }) => source);
  const shown = sources.flatMap((source) => (source.kind === "link" ? [source.sk, source.apiKey] : []));
  return [...knownSecrets(config), ...shown.filter((secret) => secret !== undefined)];
}
