/** Methods by service. */
export type Offer = ReadonlyMap<string, readonly string[]>;

const MAX_NAME = 200;

/** `path` is `/service/method`. */
export function explain(path: string, offer: Offer): string {
  const [, service = "", method = ""] = path.slice(0, MAX_NAME).split("/");
  const methods = offer.get(service);
  if (methods !== undefined) return `${service} has no method "${method}"; it has ${methods.join(", ")}.`;
  const [served, own] = [[...offer.keys()], service.split(".").at(-1)];
  const alike = served.filter((name) => name.split(".").at(-1) === own);
  const hint = alike.length > 0 ? `it is served as ${alike.join(" and ")}` : `served are ${served.join(", ")}`;
  return `There is no service "${service}" here; ${hint}.`;
}
