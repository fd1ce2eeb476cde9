import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { GuardedFetchError, type GuardedFetchErrorCode } from "./errors.ts";
import { createGuardedFetch, type GuardedFetchOptions } from "./guarded-fetch.ts";
import { type CountingServer, startCountingServer } from "./testing/counting-server.ts";

let inside: CountingServer;

beforeAll(async () => {
  inside = await startCountingServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
    if (pathname !== "/redirect") {
      response.end("inside");
      return;
    }
    response.writeHead(Number(searchParams.get("status") ?? 302), { location: searchParams.get("to") ?? "" }).end();
  });
});
afterAll(() => inside.close());
beforeEach(() => {
  inside.hits.length = 0;
  inside.connections = 0;
});

const URL_PORT = "PORT";
const at = (url: string): string => url.replace(URL_PORT, String(inside.port));

async function refusal(
  target: string | Request,
  options: GuardedFetchOptions = {},
  init?: RequestInit,
): Promise<GuardedFetchError> {
  const error: unknown = await createGuardedFetch(options)(target, init).then(
    async (response) => response.text().then((text) => new Error(`answered: ${text}`)),
    (error: unknown) => error,
  );
  if (!(error instanceof GuardedFetchError)) throw error;
  return error;
}

const codeOf = async (...given: Parameters<typeof refusal>): Promise<GuardedFetchErrorCode> =>
  (await refusal(...given)).code;

describe("targets that must not be reached", () => {
  it.each<[what: string, url: string, code?: GuardedFetchErrorCode]>([
    ["loopback", "http://127.0.0.1:PORT/"],
    ["loopback, elsewhere in its range", "http://127.9.8.7:PORT/"],
    ["loopback, short", "http://127.1:PORT/"],
    ["loopback, decimal", "http://2130706433:PORT/"],
    ["loopback, octal", "http://0177.0.0.1:PORT/"],
    ["loopback, octal with zeros", "http://00000177.0.0.01:PORT/"],
    ["loopback, hexadecimal", "http://0x7f000001:PORT/"],
    ["loopback, hexadecimal parts", "http://0x7f.0x0.0x0.0x1:PORT/"],
    ["loopback, mixed", "http://0x7f.1:PORT/"],
    ["loopback, trailing dot", "http://127.0.0.1.:PORT/"],
    ["loopback, full-width digits", "http://１２７.０.０.１:PORT/"],
    ["loopback, ideographic stops", "http://127。0。0。1:PORT/"],
    ["loopback, escaped", "http://%31%32%37.0.0.1:PORT/"],
    ["loopback, IPv6", "http://[::1]:PORT/"],
    ["loopback, IPv6 in full", "http://[0:0:0:0:0:0:0:1]:PORT/"],
    ["loopback, IPv4-mapped", "http://[::ffff:127.0.0.1]:PORT/"],
    ["loopback, IPv4-mapped in hexadecimal", "http://[::ffff:7f00:1]:PORT/"],
    ["loopback, IPv4-compatible", "http://[::127.0.0.1]:PORT/"],
    ["loopback, translated", "http://[::ffff:0:127.0.0.1]:PORT/"],
    ["loopback, NAT64", "http://[64:ff9b::127.0.0.1]:PORT/"],
    ["loopback, 6to4", "http://[2002:7f00:1::]:PORT/"],
    ["loopback by name", "http://localhost:PORT/"],
    ["loopback by name, upper case", "http://LOCALHOST:PORT/"],
    ["loopback by name, trailing dot", "http://localhost.:PORT/"],
    ["loopback by name, below", "http://agent.localhost:PORT/"],
    ["loopback by name, circled letters", "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/"],
    ["loopback by name, escaped", "http://loc%61lhost:PORT/"],
    ["loopback, backslashes", "http:\\\\127.0.0.1:PORT\\"],
    ["loopback, line break inside", "http://127.0.\n0.1:PORT/"],
    ["unspecified", "http://0.0.0.0:PORT/"],
    ["unspecified, short", "http://0:PORT/"],
    ["unspecified, IPv6", "http://[::]:PORT/"],
    ["private 10/8", "http://10.0.0.1/"],
    ["private 172.16/12", "http://172.16.0.1/"],
    ["private 192.168/16", "http://192.168.0.1/"],
    ["private, decimal", "http://3232235521/"],
    ["carrier 100.64/10", "http://100.64.0.1/"],
    ["link-local", "http://169.254.0.1/"],
    ["link-local, IPv6", "http://[fe80::1]/"],
    ["site-local, IPv6", "http://[fec0::1]/"],
    ["unique-local", "http://[fd00::1]/"],
    ["multicast", "http://224.0.0.1/"],
    ["multicast, IPv6", "http://[ff02::1]/"],
    ["broadcast", "http://255.255.255.255/"],
    ["documentation", "http://192.0.2.1/"],
    ["documentation, IPv6", "http://[2001:db8::1]/"],
    ["benchmark", "http://198.18.0.1/"],
    ["metadata", "http://169.254.169.254/latest/meta-data/"],
    ["metadata, hexadecimal", "http://0xa9fea9fe/"],
    ["metadata, IPv4-mapped", "http://[::ffff:169.254.169.254]/"],
    ["metadata, NAT64", "http://[64:ff9b::a9fe:a9fe]/"],
    ["metadata, IPv6", "http://[fd00:ec2::254]/"],
    ["metadata by name", "http://metadata.google.internal/computeMetadata/v1/"],
    ["metadata by name, trailing dot", "http://metadata.google.internal./"],
    ["a name without a dot", "http://kubernetes/"],
    ["a name of this network", "http://printer.local/"],
    ["a file", "file:///etc/passwd", "forbidden-scheme"],
    ["gopher", "gopher://127.0.0.1:PORT/_", "forbidden-scheme"],
    ["ftp", "ftp://127.0.0.1:PORT/", "forbidden-scheme"],
    ["data", "data:text/plain,hello", "forbidden-scheme"],
    ["javascript", "javascript:alert(1)", "forbidden-scheme"],
    ["a user name", "http://user@example.com/", "credentials-in-url"],
    ["a password", "http://:secret@example.com/", "credentials-in-url"],
    ["a host that looks like another", "http://example.com@127.0.0.1:PORT/", "credentials-in-url"],
    ["no URL", "//127.0.0.1:PORT/", "bad-url"],
    ["no host", "http://", "bad-url"],
    ["a number too large for an address", "http://4294967296/", "bad-url"],
    ["a zone", "http://[fe80::1%25eth0]/", "bad-url"],
  ])("%s: %j", async (_, url, code = "forbidden-target") => {
    const error = await refusal(at(url), { timeoutMs: 5_000 });
    expect(error.code).toBe(code);
    expect(error.message).not.toMatch(/\d|secret|local/);
    expect(inside.connections).toBe(0);
  });

  it.each([
    "127.0.0.1",
    "10.1.2.3",
    "169.254.169.254",
    "100.64.1.1",
    "0.0.0.0",
    "::1",
    "::ffff:127.0.0.1",
    "fe80::1%lo",
    "fd00::1",
    "64:ff9b::7f00:1",
    "not an address",
  ])("[PUSH-SSRF-001] a name that leads to %s", async (address) => {
    const lookup = async () => [address];
    const error = await refusal(at("http://agents.example.com:PORT/"), { lookup });
    expect([error.code, error.message]).toEqual([
      "forbidden-target",
      new GuardedFetchError("forbidden-target").message,
    ]);
    expect(inside.connections).toBe(0);
  });

  it("a name with a good and a bad address", async () => {
    const lookup = async () => ["203.0.114.1", "127.0.0.1"];
    expect(await codeOf(at("http://agents.example.com:PORT/"), { lookup })).toBe("forbidden-target");
    expect(inside.connections).toBe(0);
  });

  it("a Request", async () => {
    expect(await codeOf(new Request(at("http://127.0.0.1:PORT/")))).toBe("forbidden-target");
    expect(inside.connections).toBe(0);
  });

  it("metadata and what is no host also with allowPrivate", async () => {
    for (const host of [
      "169.254.169.254",
      "0.0.0.0",
      "[::]",
      "224.0.0.1",
      "[fd00:ec2::254]",
      "metadata.google.internal",
    ]) {
      expect(await codeOf(at(`http://${host}:PORT/`), { allowPrivate: true })).toBe("forbidden-target");
    }
    expect(inside.connections).toBe(0);
  });
});

describe("targets that may be reached", () => {
  const ask = async (url: string, options: GuardedFetchOptions, init?: RequestInit) => {
    const response = await createGuardedFetch(options)(at(url), init);
    return [response.status, await response.text()];
  };

  it.each<[string, GuardedFetchOptions]>([
    ["http://127.0.0.1:PORT/", { allowPrivate: true }],
    ["http://localhost:PORT/", { allowPrivate: true }],
    ["http://[::1]:PORT/", { allowPrivate: true }],
    ["http://127.0.0.1:PORT/", { allow: ["127.0.0.0/8"] }],
    ["http://127.0.0.1:PORT/", { allow: ["127.0.0.1"] }],
    ["http://hook.example.com:PORT/", { allow: ["hook.example.com"], lookup: async () => ["127.0.0.1"] }],
    ["http://hook.example.com.:PORT/", { allow: ["*.example.com"], lookup: async () => ["127.0.0.1"] }],
  ])("%s with %j", async (url, options) => {
    expect(await ask(url, options)).toEqual([200, "inside"]);
    expect(inside.hits).toHaveLength(1);
  });

  it("an allowed name does not open metadata, and a mapped address not what is in it", async () => {
    const lookup = async () => ["169.254.169.254"];
    expect(await codeOf("http://hook.example.com/", { allow: ["hook.example.com"], lookup })).toBe("forbidden-target");
    expect(await codeOf("http://[64:ff9b::7f00:1]/", { allow: ["64:ff9b::/96"] })).toBe("forbidden-target");
  });

  it("refuses an allow list that makes no sense", () => {
    for (const entry of ["10.0.0.0/99", "http://host", "a b", ""]) {
      expect(() => createGuardedFetch({ allow: [entry] })).toThrow(TypeError);
    }
  });

  it("connects to the address that was checked, whatever the name means next", async () => {
    const answers = [["127.0.0.2"], ["127.0.0.1"]];
    let asked = 0;
    const fetch = createGuardedFetch({ allow: ["127.0.0.2"], lookup: async () => answers[asked++] ?? [] });
    const url = at("http://agents.example.com:PORT/");
    const first = await fetch(url, { headers: { connection: "close" } });
    expect(await first.text()).toBe("inside");
    expect(inside.hits.map(({ host, headers }) => [host, headers.host])).toEqual([
      ["::ffff:127.0.0.2", `agents.example.com:${inside.port}`],
    ]);
    expect(asked).toBe(1);
    const again = createGuardedFetch({ allow: ["127.0.0.2"], lookup: async () => answers[asked++] ?? [] });
    await expect(again(url)).rejects.toMatchObject({ code: "forbidden-target" });
    expect(inside.hits).toHaveLength(1);
  });

  it("tries the next address where one does not answer", async () => {
    const closed = await startCountingServer();
    await closed.close();
    const lookup = async () => ["127.0.0.3", "127.0.0.2"];
    const fetch = createGuardedFetch({ allow: ["127.0.0.0/8"], lookup });
    expect((await fetch(at("http://agents.example.com:PORT/"))).status).toBe(200);
    await expect(fetch(`http://agents.example.com:${closed.port}/`)).rejects.toMatchObject({ code: "unreachable" });
  });

  it("says the same of a name that does not exist and of a port that is closed", async () => {
    const lookup = () => Promise.reject(new Error("ENOTFOUND inner.corp"));
    const error = await refusal("http://nowhere.example.com/", { lookup });
    expect([error.code, error.message]).toEqual(["unreachable", new GuardedFetchError("unreachable").message]);
    expect(await codeOf("http://nowhere.example.com/", { lookup: async () => [] })).toBe("unreachable");
  });

  it("sends what fetch sends, without the headers that are not the caller's", async () => {
    const body = new URLSearchParams({ a: "1" });
    const headers = { host: "other.example", "x-own": "yes", "accept-encoding": "gzip" };
    await ask("http://127.0.0.1:PORT/form?x=1", { allowPrivate: true }, { method: "POST", body, headers });
    const [hit] = inside.hits;
    expect(hit).toMatchObject({ method: "POST", path: "/form?x=1", body: "a=1" });
    expect(hit?.headers).toMatchObject({
      host: `127.0.0.1:${inside.port}`,
      "x-own": "yes",
      "accept-encoding": "identity",
      "content-type": expect.stringContaining("application/x-www-form-urlencoded"),
    });
  });
});

describe("redirects", () => {
  const redirect = (to: string, status = 302) =>
    at(`http://127.0.0.2:PORT/redirect?status=${status}&to=${encodeURIComponent(at(to))}`);
  const allow = { allow: ["127.0.0.2", "127.0.0.3"] };

  it.each([
    ["http://127.0.0.1:PORT/", "forbidden-target"],
    ["http://0x7f.1:PORT/", "forbidden-target"],
    ["http://localhost:PORT/", "forbidden-target"],
    ["//127.0.0.1:PORT/", "forbidden-target"],
    ["http://169.254.169.254/", "forbidden-target"],
    ["file:///etc/passwd", "forbidden-scheme"],
    ["http://user:word@127.0.0.3:PORT/", "credentials-in-url"],
    ["http://[", "bad-redirect"],
  ])("to %s is not followed", async (to, code) => {
    expect(await codeOf(redirect(to), allow)).toBe(code);
    expect(inside.hits).toHaveLength(1);
  });

  it("drops everything of the caller on the way to another origin, and does not take it up again", async () => {
    const secrets = { authorization: "Bearer s", cookie: "a=b", "x-api-key": "k", "x-mine": "m", accept: "text/plain" };
    const back = redirect("http://127.0.0.2:PORT/back").replace("127.0.0.2", "127.0.0.3");
    const fetch = createGuardedFetch(allow);
    const response = await fetch(redirect(back), { headers: secrets });
    expect([response.url, response.redirected]).toEqual([at("http://127.0.0.2:PORT/back"), true]);
    const [first, ...others] = inside.hits;
    expect(first?.headers).toMatchObject(secrets);
    expect(others).toHaveLength(2);
    for (const { headers } of others) {
      expect(headers).toMatchObject({ accept: "text/plain" });
      for (const name of ["authorization", "cookie", "x-api-key", "x-mine"]) expect(headers).not.toHaveProperty(name);
    }
  });

  it("keeps it within one origin", async () => {
    await createGuardedFetch(allow)(redirect("/next"), { headers: { authorization: "Bearer s" } });
    expect(inside.hits.map(({ path, headers }) => [path.split("?")[0], headers.authorization])).toEqual([
      ["/redirect", "Bearer s"],
      ["/next", "Bearer s"],
    ]);
  });

  it("takes a body nowhere else, and turns a POST into a GET as fetch does", async () => {
    const post = { method: "POST", body: "the message" };
    for (const status of [301, 302, 303, 307, 308]) {
      expect(await codeOf(redirect("http://127.0.0.3:PORT/", status), allow, post)).toBe("bad-redirect");
    }
    inside.hits.length = 0;
    const fetch = createGuardedFetch(allow);
    await fetch(redirect("/next", 303), post);
    await fetch(redirect("/next", 307), post);
    expect(inside.hits.filter(({ path }) => path === "/next").map(({ method, body }) => [method, body])).toEqual([
      ["GET", ""],
      ["POST", "the message"],
    ]);
  });

  it("is refused where none is allowed, and handed over where the caller looks itself", async () => {
    expect(await codeOf(redirect("/next"), { ...allow, maxRedirects: 0 })).toBe("bad-redirect");
    expect(await codeOf(redirect("/next"), allow, { redirect: "error" })).toBe("bad-redirect");
    const response = await createGuardedFetch({ ...allow, maxRedirects: 0 })(redirect("/next"), { redirect: "manual" });
    expect([response.status, response.headers.get("location")]).toEqual([302, "/next"]);
    expect(inside.hits.map(({ path }) => path)).not.toContain("/next");
  });

  it("ends somewhere", async () => {
    const loop = await startCountingServer((_, response) => response.writeHead(302, { location: "/again" }).end());
    expect(await codeOf(`http://127.0.0.2:${loop.port}/`, allow)).toBe("too-many-redirects");
    expect(loop.hits).toHaveLength(6);
    await loop.close();
  });
});
