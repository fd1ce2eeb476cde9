/** A person at a browser, as far as a login page can tell: keeps cookies, follows redirects, fills in forms. */

export interface Page {
  readonly url: string;
  readonly status: number;
  readonly text: string;
}

interface Cookie {
  readonly name: string;
  readonly value: string;
  readonly host: string;
  readonly path: string;
}

const MOST_STEPS = 30;

/** `values` go into the fields of these names; hidden fields and buttons are sent as they are. */
export async function browse(url: string, values: Readonly<Record<string, string>> = PERSON): Promise<Page> {
  const cookies = new Map<string, Cookie>();
  let request: { url: string; body?: URLSearchParams } = { url };
  for (let step = 0; step < MOST_STEPS; step++) {
    const response = await fetch(request.url, {
      redirect: "manual",
      method: request.body === undefined ? "GET" : "POST",
      headers: { cookie: cookiesFor(cookies, request.url), accept: "text/html" },
      ...(request.body === undefined ? {} : { body: request.body }),
    });
    remember(cookies, request.url, response.headers.getSetCookie());
    const location = response.headers.get("location");
    const text = await response.text();
    if (location !== null) {
      request = { url: new URL(location, request.url).href };
      continue;
    }
    const form = readForm(text, request.url, values);
    if (form === undefined) return { url: request.url, status: response.status, text };
    request = form;
  }
  throw new Error("The browser was sent around in circles.");
}

const PERSON = { login: "alice", password: "wonderland" };

function readForm(text: string, base: string, values: Readonly<Record<string, string>>) {
  const [, attributes = "", content = ""] = /<form([^>]*)>([\s\S]*?)<\/form>/.exec(text) ?? [];
  if (attributes === "" || /logout|abort/.test(attributes)) return undefined;
  const body = new URLSearchParams();
  for (const [, input = ""] of content.matchAll(/<input([^>]*)>/g)) {
    const name = attribute(input, "name");
    if (name !== undefined) body.set(name, values[name] ?? attribute(input, "value") ?? "");
  }
  return { url: new URL(attribute(attributes, "action") ?? base, base).href, body };
}

function attribute(text: string, name: string): string | undefined {
  const value = new RegExp(`\\b${name}="([^"]*)"`).exec(text)?.[1];
  return value?.replaceAll("&amp;", "&").replaceAll("&#39;", "'").replaceAll("&quot;", '"');
}

function remember(cookies: Map<string, Cookie>, url: string, lines: readonly string[]): void {
  for (const line of lines) {
    const [pair = "", ...rest] = line.split(";").map((part) => part.trim());
    const [name = "", value = ""] = pair.split("=", 2);
    const path = rest.find((part) => /^path=/i.test(part))?.slice(5) ?? "/";
    const { host } = new URL(url);
    const key = `${host} ${path} ${name}`;
    if (value === "") cookies.delete(key);
    else cookies.set(key, { name, value, host, path });
  }
}

function cookiesFor(cookies: Map<string, Cookie>, url: string): string {
  const { host, pathname } = new URL(url);
  return [...cookies.values()]
    .filter((cookie) => cookie.host === host && pathname.startsWith(cookie.path))
    .map(({ name, value }) => `${name}=${value}`)
    .join("; ");
}
