/** How one agent is connected to the platform. */

import type { JsonObject } from "../../model/json.ts";
import type { Language } from "../xiaoyi/phone-texts.ts";
import type { FileIntake, OfflineNotifications, PersistentMap } from "../xiaoyi/ports.ts";
import type { RenderMode } from "../xiaoyi/render/renderer.ts";
import type { FileUploads } from "../xiaoyi/upload.ts";

/** How the platform proves who it is; chosen in its console. */
export type Access =
  | { readonly kind: "signature"; readonly accessKey: string; readonly secretKey: string }
  | {
      readonly kind: "api-key";
      readonly apiKey: string;
      /** Lower-case. */
      readonly header: string;
      /** Parameter of the query that may hold the key instead. */
      readonly query: string | undefined;
    }
  | { readonly kind: "oauth"; readonly clientId: string; readonly clientSecret: string };

export interface Entry {
  readonly access: Access;
  /** To whom the platform's tasks belong. */
  readonly owner: string;
  readonly render: RenderMode;
  /** Of what the server itself says. */
  readonly language: Language;
  /** How long an `agentSessionId` is good for. */
  readonly sessionTtlMs: number;
  /** Absent: users cannot log in. */
  readonly accounts: Accounts | undefined;
  /** Absent: users who left are told of nothing. */
  readonly notifications?: OfflineNotifications | undefined;
  /** Tasks with the conversation whose stream is open. Absent: a crash leaves its readers without a word. */
  readonly unanswered?: PersistentMap | undefined;
  /** By session, the context of one that was cleared. Absent: a session that goes on stays in its context. */
  readonly cleared?: PersistentMap | undefined;
  /** Absent: files stay where the platform has them. */
  readonly intake?: FileIntake | undefined;
  /** Absent: files of answers are told by their names and links. */
  readonly uploads?: FileUploads | undefined;
}

/** What becomes of a user's login. */
export interface Accounts {
  /** Who the user is, by the code that the login gave. Throws a ProtocolError for a code that is not good. */
  exchange(authCode: string): Promise<JsonObject>;
  /** What is known of those who logged in, by `agentLoginSessionId`. */
  readonly bindings: Bindings;
}

export interface Bindings {
  save(loginSessionId: string, account: JsonObject): Promise<void>;
  find(loginSessionId: string): Promise<JsonObject | undefined>;
  /** Also where there is none. */
  forget(loginSessionId: string): Promise<void>;
}

/** The secret that all of an entry's own tokens hang on: whoever changes it ends them. */
export function secretOf({ access }: Entry): string {
  switch (access.kind) {
    case "signature":
      return access.secretKey;
    case "api-key":
      return access.apiKey;
    case "oauth":
      return access.clientSecret;
  }
}
