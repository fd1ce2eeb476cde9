/** What a server is told about Xiaoyi, as the dialects it then serves. */
import { identifiesCallers } from "../../auth/verify/create-authenticator.ts";
import { ANONYMOUS } from "../../model/caller.ts";
import type { Log } from "../../model/ports.ts";
import { systemClock, uuidIds } from "../clock-and-ids.ts";
import type { ServeOptions } from "../core.ts";
import type { ConfiguredDialects } from "../dialects.ts";
import { AccountBindings } from "./account-bindings.ts";
import { KeptNotes } from "./kept-notes.ts";
import { openXiaoyiHttp } from "./open-http.ts";
import type { XiaoyiLinkSurroundings, XiaoyiLinks } from "./open-links.ts";
import { openPhoneServices, type PhoneServices, type PhoneSurroundings, placesBeside } from "./phone-services.ts";

type Surroundings = Pick<ServeOptions, "agents" | "auth" | "authenticate" | "baseDirectory" | "store" | "xiaoyi">;

/** What both ways share; to be started when the engine runs. */
export function openPhones(
  options: Surroundings,
  around: Pick<PhoneSurroundings, "log" | "meter" | "serviceOf">,
): PhoneServices {
  return openPhoneServices(options.xiaoyi?.files ?? {}, {
    ...around,
    ...storePlace(options),
    clock: systemClock,
    random: Math.random,
    uniqueId: uuidIds.message,
  });
}

export function openXiaoyi(options: Surroundings, phones: PhoneServices, log: Log): ConfiguredDialects {
  const { agents, xiaoyi = {} } = options;
  const { keptFile } = placesBeside(storePlace(options));
  const bindings = new AccountBindings(keptFile("logins"), log);
  const cleared = new KeptNotes(keptFile("http-contexts"), log);
  const xiaoyiHttp = openXiaoyiHttp(xiaoyi.http ?? [], {
    clock: systemClock,
    agents: new Set(Object.keys(agents)),
    bindings: (agent, owner) => bindings.of(agent, owner),
    clearedOf: (agent, owner) => cleared.of(agent, owner),
    defaultOwner: defaultOwner(options),
    phones,
    log,
  });
  return { xiaoyiHttp };
}

/** Where everybody is anonymous, what came from a phone can be read from elsewhere. */
function defaultOwner({
  auth = {},
  authenticate,
}: Pick<Surroundings, "auth" | "authenticate">): (agent: string) => string {
  const identifies = authenticate !== undefined || identifiesCallers(auth);
  return (agent) => (identifies ? `xiaoyi:${agent}` : ANONYMOUS.owner);
}

export const NO_LINKS: XiaoyiLinks = { states: [], stop: async () => {} };

/** What it takes to dial is loaded only where somebody does. */
export async function openLinks(
  options: Omit<Surroundings, "agents">,
  around: Pick<XiaoyiLinkSurroundings, "contextOf" | "log" | "phones" | "since">,
): Promise<XiaoyiLinks> {
  const { links = [] } = options.xiaoyi ?? {};
  if (links.length === 0) return NO_LINKS;
  const { openXiaoyiLinks } = await import("./open-links.ts");
  return openXiaoyiLinks(links, {
    ...around,
    clock: systemClock,
    ids: uuidIds,
    random: Math.random,
    defaultOwner: defaultOwner(options),
    contextsFile: placesBeside(storePlace(options)).keptFile("contexts"),
  });
}

function storePlace({ baseDirectory = process.cwd(), store }: Pick<Surroundings, "baseDirectory" | "store">) {
  return { baseDirectory, store: typeof store === "string" ? store : undefined };
}
