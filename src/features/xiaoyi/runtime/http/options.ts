/** How an agent is connected to the platform. */

import type { JsonObject } from "../../../../core/model/json.ts";
import type { RenderMode } from "../../codec/render/renderer.ts";
import type { UserServices } from "../ports.ts";

/** How the platform authenticates; chosen in its console. */
export type Access =
  | { readonly kind: "signature"; readonly accessKey: string; readonly secretKey: string }
  | {
      readonly kind: "api-key";
      readonly apiKey: string;
      /** Lower-case. */
      readonly header: string;
      /** Query parameter that may hold the key instead. */
      readonly query: string | undefined;
    }
  | { readonly kind: "oauth"; readonly clientId: string; readonly clientSecret: string };

export interface Entry extends UserServices {
  readonly access: Access;
  /** The owner of the platform's tasks. */
  readonly owner: string;
  readonly render: RenderMode;
  readonly sessionTtlMs: number;
  /** Absent: users cannot log in. */
  readonly accounts: Accounts | undefined;
}

export interface Accounts {
  /** Exchanges the login's authorization code for the user's account. Throws a ProtocolError for an invalid code. */
  exchange(authCode: string): Promise<JsonObject>;
  /** Accounts of logged-in users, by `agentLoginSessionId`. */
  readonly bindings: Bindings;
}

export interface Bindings {
  save(loginSessionId: string, account: JsonObject): Promise<void>;
  find(loginSessionId: string): Promise<JsonObject | undefined>;
  /** Succeeds also if there is none. */
  forget(loginSessionId: string): Promise<void>;
}

/** The secret from which the keys of all tokens of an entry are derived: changing it revokes them. */
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
