import type { RemoteCredentials } from "../../../features/gateway/config-schema.ts";
import { type AuthOptions, secretsOf } from "../../auth/verify/create-authenticator.ts";
import { canParseUrl } from "../../model/url.ts";
import { isSecretName } from "../logging/redact.ts";
import type { AgentSource, DragomanConfig } from "./config.ts";
import { type SectionOptions, sectionSecrets } from "./sections.ts";

interface SecretSources extends SectionOptions {
  readonly store?: unknown;
  readonly cluster?: { readonly listenUrl?: string };
  readonly auth?: AuthOptions;
  readonly push?: boolean | { readonly hmac?: { readonly secret: string } | undefined };
}

/** Configured secrets, to be redacted wherever they occur. */
export function collectSecrets({ auth = {}, push, store, cluster, ...sections }: SecretSources): readonly string[] {
  const hmac = typeof push === "object" ? push.hmac : undefined;
  return [
    ...[store, cluster?.listenUrl].flatMap(passwordsOf),
    ...secretsOf(auth),
    ...(hmac === undefined ? [] : [hmac.secret]),
    ...sectionSecrets(sections),
  ];
}

/** Of a URL, as it is written there and as it is meant. */
function passwordsOf(url: unknown): readonly string[] {
  if (typeof url !== "string" || !canParseUrl(url)) return [];
  const { password, searchParams } = new URL(url);
  const inQuery = searchParams.get("password") ?? "";
  return [password, decodeText(password), inQuery].filter((secret) => secret !== "");
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Like `collectSecrets`, for a whole configuration: includes credentials of dial-in and remote agents, and
 * environments of programs.
 */
export function collectConfigSecrets(config: DragomanConfig): readonly string[] {
  const { registry } = config;
  const targets = registry === false ? [] : registry.registerWith;
  return [
    ...collectSecrets(config),
    ...[...config.agents.values()].flatMap(({ source }) => secretsOfSource(source)),
    ...targets.flatMap((target) => (typeof target === "string" ? [] : secretsOfCredentials(target.credentials))),
  ];
}

function secretsOfCredentials(credentials: RemoteCredentials | undefined): readonly string[] {
  const { apiKey, basic, bearer, oauth, sk } = credentials ?? {};
  return [apiKey, basic?.password, bearer, oauth?.clientSecret, sk].filter((secret) => secret !== undefined);
}

export function secretsOfSource(source: AgentSource): readonly string[] {
  if (source.kind === "link") return [source.sk, source.apiKey].filter((secret) => secret !== undefined);
  if (source.kind === "remote") return secretsOfCredentials(source.credentials);
  if (source.kind === "llm" || source.kind === "writer") {
    return source.llm.apiKey === undefined ? [] : [source.llm.apiKey];
  }
  if (source.kind !== "process") return [];
  return Object.entries(source.env).flatMap(([name, value]) => (isSecretName(name) ? [value] : []));
}
