/** An issuer of tokens in this process, with discovery and keys where OpenID Connect has them. */
import { createServer } from "node:http";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import { listen } from "./lifecycle.ts";

type Pair = Awaited<ReturnType<typeof generateKeyPair>>;

export interface TokenWishes {
  readonly scope?: string;
  /** Seconds from now until it expires; 300 unless given. */
  readonly lasts?: number;
  /** Signed by somebody else. */
  readonly forged?: boolean;
}

export class Issuer {
  readonly url: string;
  readonly audience = "dragoman";
  readonly #pair: Pair;
  readonly #other: Pair;

  private constructor(url: string, pair: Pair, other: Pair) {
    this.url = url;
    this.#pair = pair;
    this.#other = other;
  }

  static async start(): Promise<Issuer> {
    const [pair, other] = await Promise.all([generateKeyPair("ES256"), generateKeyPair("ES256")]);
    const jwk: JWK = { ...(await exportJWK(pair.publicKey)), kid: "key", alg: "ES256" };
    let url = "";
    const server = createServer((request, response) => {
      const documents: Record<string, unknown> = {
        "/.well-known/openid-configuration": { issuer: url, jwks_uri: `${url}/keys` },
        "/keys": { keys: [jwk] },
      };
      const document = documents[request.url ?? ""];
      response.writeHead(document === undefined ? 404 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify(document ?? {}));
    });
    url = `http://127.0.0.1:${await listen(server)}`;
    return new Issuer(url, pair, other);
  }

  token(subject: string, { scope, lasts = 300, forged = false }: TokenWishes = {}): Promise<string> {
    const now = Math.floor(Date.now() / 1_000);
    return new SignJWT(scope === undefined ? {} : { scope })
      .setProtectedHeader({ alg: "ES256", kid: "key" })
      .setIssuer(this.url)
      .setAudience(this.audience)
      .setSubject(subject)
      .setIssuedAt(now - 3_600)
      .setExpirationTime(now + lasts)
      .sign((forged ? this.#other : this.#pair).privateKey);
  }
}
