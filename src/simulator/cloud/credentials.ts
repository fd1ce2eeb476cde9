import type { Clock } from "../../model/ports.ts";
import { parseFields, textIn } from "../json.ts";
import { sign } from "../signature.ts";
import { post, readText } from "./http-call.ts";

/** What the owner of an agent typed into the console of the platform. */
export type CloudCredentials =
  | { readonly kind: "signed"; readonly accessKey: string; readonly secretKey: string }
  | { readonly kind: "header"; readonly key: string; readonly name?: string; readonly bearer?: boolean }
  | { readonly kind: "query"; readonly key: string; readonly name?: string }
  | {
      readonly kind: "oauth";
      readonly tokenUrl: string;
      readonly clientId: string;
      readonly clientSecret: string;
      readonly scope?: string;
    }
  | { readonly kind: "none" };

/** The console cuts what is longer, and says nothing. */
const CONSOLE_ROOM = 64;

const typed = (secret: string) => secret.slice(0, CONSOLE_ROOM);

export interface Proof {
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
}

const NO_PROOF: Proof = { headers: {}, query: {} };

export class CredentialSource {
  readonly #credentials: CloudCredentials;
  readonly #clock: Clock;
  #token: { readonly value: string; readonly until: number } | undefined;

  constructor(credentials: CloudCredentials, clock: Clock) {
    this.#credentials = credentials;
    this.#clock = clock;
  }

  async proof(): Promise<Proof> {
    const given = this.#credentials;
    switch (given.kind) {
      case "none":
        return NO_PROOF;
      case "signed": {
        const ts = String(this.#clock.now());
        const headers = { accessKey: typed(given.accessKey), sign: sign(typed(given.secretKey), ts), ts };
        return { headers, query: {} };
      }
      case "header": {
        const value = given.bearer === false ? typed(given.key) : `Bearer ${typed(given.key)}`;
        return { headers: { [given.name ?? "Authorization"]: value }, query: {} };
      }
      case "query":
        return { headers: {}, query: { [given.name ?? "apiKey"]: typed(given.key) } };
      case "oauth":
        return { headers: { Authorization: `Bearer ${await this.#fetchToken(given)}` }, query: {} };
    }
  }

  async #fetchToken(oauth: Extract<CloudCredentials, { readonly kind: "oauth" }>): Promise<string> {
    if (this.#token !== undefined && this.#clock.now() < this.#token.until) return this.#token.value;
    const form = new URLSearchParams({
      grant_type: "client_credentials",
      client_id: oauth.clientId,
      client_secret: oauth.clientSecret,
      ...(oauth.scope === undefined ? {} : { scope: oauth.scope }),
    });
    const answer = await post({
      url: new URL(oauth.tokenUrl),
      headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
      body: form.toString(),
    });
    const { access_token: token, expires_in: seconds } = parseFields(await readText(answer)) ?? {};
    const value = textIn(token);
    if (answer.statusCode !== 200 || value === undefined)
      throw new Error(`The token URL answered ${answer.statusCode}.`);
    this.#token = { value, until: this.#clock.now() + Number(seconds ?? 0) * 1000 };
    return value;
  }
}
