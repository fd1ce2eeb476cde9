import { type Random, uuidFrom } from "../chance.ts";
import type { UserFile } from "../phone/phone.ts";
import type { Route } from "./web.ts";

const PREFIX = "/files/";

/** What users attach: links that work without credentials, as those of the platform do. */
export class HostedFiles {
  readonly #files = new Map<string, UserFile>();
  readonly #random: Random;
  readonly #origin: () => string;

  constructor(random: Random, origin: () => string) {
    this.#random = random;
    this.#origin = origin;
  }

  add(file: UserFile): { readonly name: string; readonly mimeType: string; readonly uri: string } {
    const path = `${PREFIX}${uuidFrom(this.#random)}/${encodeURIComponent(file.name)}`;
    this.#files.set(path, file);
    return { name: file.name, mimeType: file.mimeType, uri: `${this.#origin()}${path}` };
  }

  readonly route: Route = async (request, { pathname }, response) => {
    if (request.method !== "GET" || !pathname.startsWith(PREFIX)) return false;
    const file = this.#files.get(pathname);
    if (file === undefined) response.writeHead(404).end();
    else {
      response.writeHead(200, { "content-type": "application/octet-stream", "content-length": file.bytes.byteLength });
      response.end(file.bytes);
    }
    return true;
  };
}
