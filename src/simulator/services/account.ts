import { hexDigits, type Random } from "../chance.ts";
import { type Route, readBody, replyJson } from "./web.ts";

export const TOKEN_PATH = "/oauth2/v3/token";

/** The account service: what an agent asks who the user is that wants to be bound. */
export class AccountService {
  readonly #random: Random;
  readonly #codes = new Set<string>();

  constructor(random: Random) {
    this.#random = random;
  }

  /** A code that can be exchanged once. */
  issueCode(): string {
    const code = hexDigits(this.#random, 32);
    this.#codes.add(code);
    return code;
  }

  readonly route: Route = async (request, { pathname }, response) => {
    if (request.method !== "POST" || pathname !== TOKEN_PATH) return false;
    const form = new URLSearchParams((await readBody(request))?.toString("utf8") ?? "");
    if (form.get("grant_type") !== "authorization_code" || !this.#codes.delete(form.get("code") ?? "")) {
      replyJson(response, 400, {
        error: 1101,
        sub_error: 20155,
        error_description: "code has been used or is unknown",
      });
      return true;
    }
    replyJson(response, 200, {
      access_token: hexDigits(this.#random, 40),
      token_type: "Bearer",
      expires_in: 3600,
      open_id: hexDigits(this.#random, 24),
    });
    return true;
  };
}
