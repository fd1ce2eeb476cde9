import { type AuthOptions, secretsOf } from "../../auth/verify/create-authenticator.ts";
import { fieldsOf } from "../../model/json.ts";
import { canParseUrl } from "../../model/url.ts";
import { agentKinds } from "./agent-kinds.ts";
import type { AgentConfig, DragomanConfig } from "./config.ts";
import { sectionSecrets } from "./sections.ts";

interface SecretSources {
  readonly store?: unknown;
  readonly auth?: AuthOptions;
  readonly push?: boolean | { readonly hmac?: { readonly secret: string } | undefined };
}

/** Configured secrets, to be redacted wherever they occur; `options` also has the sections of extensions. */
export function collectSecrets(options: SecretSources): readonly string[] {
  const { auth = {}, push, store } = options;
  const hmac = typeof push === "object" ? push.hmac : undefined;
  return [
    ...passwordsOf(store),
    ...secretsOf(auth),
    ...(hmac === undefined ? [] : [hmac.secret]),
    ...sectionSecrets(fieldsOf(options)),
  ];
}

/** Of a URL, as it is written there and as it is meant. */
export function passwordsOf(url: unknown): readonly string[] {
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

/** Like `collectSecrets`, for a whole configuration: includes the secrets of agents. */
export function collectConfigSecrets(config: DragomanConfig): readonly string[] {
  return [
    ...collectSecrets(config),
    ...sectionSecrets(config.sections),
    ...[...config.agents.values()].flatMap(secretsOfAgent),
  ];
}

export function secretsOfAgent({ kind, source }: Pick<AgentConfig, "kind" | "source">): readonly string[] {
  return agentKinds().get(kind)?.secrets?.(source) ?? [];
}
