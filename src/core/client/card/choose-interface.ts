/** Selects the interfaces of a card that the client supports, in the card's order, which is the agent's preference. */

import type { CallableDialect, ExchangeCalling, RpcCalling } from "../../dialects/contract.ts";
import type { AgentCard, AgentInterface } from "../../model/card.ts";
import { omitUndefined } from "../../model/json.ts";
import { canParseUrl } from "../../model/url.ts";
import {
  callableDialects,
  findBinding,
  type SupportedBinding,
  sameBinding,
  supportedBindings,
  toMajorMinor,
} from "../dialects.ts";
import { ConnectionError } from "../errors.ts";
import type { ChosenInterface } from "../options.ts";
import { type GrpcAddress, parseGrpcAddress } from "../transport/grpc-channels.ts";

/** An interface of the card, with the dialect and binding to call it. */
export type Candidate = {
  readonly dialect: CallableDialect;
  readonly interface: ChosenInterface;
} & (
  | { readonly calling: ExchangeCalling; readonly address?: undefined }
  | { readonly calling: RpcCalling; readonly address: GrpcAddress }
);

interface Choice {
  /** At least one, best first. */
  readonly candidates: readonly [Candidate, ...Candidate[]];
  /** Descriptions of entries that the card prefers but that are not supported. */
  readonly passedOver: readonly string[];
}

interface ChooseOptions {
  readonly binding?: string | undefined;
  /** `Major.Minor`. */
  readonly version?: string | undefined;
  /** Name of a dialect. */
  readonly dialect?: string | undefined;
  /** URL of the card: resolves relative URLs in it, and determines whether gRPC uses TLS. */
  readonly cardUrl?: string | undefined;
  readonly grpcTls?: boolean | undefined;
}

export function chooseInterfaces(card: AgentCard, options: ChooseOptions = {}): Choice {
  const candidates: Candidate[] = [];
  const passedOver: string[] = [];
  for (const entry of card.supportedInterfaces) {
    const supported = findBinding(entry.protocolBinding, entry.protocolVersion);
    if (!matchesOptions(entry, supported, options)) continue;
    const candidate = supported === undefined ? undefined : toCandidate(entry, supported, options);
    if (candidate !== undefined) candidates.push(candidate);
    else if (candidates.length === 0) passedOver.push(describeInterface(entry));
  }
  const [first, ...others] = candidates;
  if (first === undefined) throw noInterface(card, options);
  return { candidates: [first, ...others], passedOver };
}

function matchesOptions(
  entry: AgentInterface,
  supported: SupportedBinding | undefined,
  wishes: ChooseOptions,
): boolean {
  const { binding, dialect, version } = wishes;
  if (binding !== undefined && !sameBinding(entry.protocolBinding, binding)) return false;
  if (version !== undefined && toMajorMinor(entry.protocolVersion) !== toMajorMinor(version)) return false;
  return dialect === undefined || supported?.dialect.name === dialect;
}

function toCandidate(
  entry: AgentInterface,
  { calling, dialect }: SupportedBinding,
  { cardUrl, grpcTls }: ChooseOptions,
): Candidate | undefined {
  const { binding, version } = calling;
  const describe = (url: string): ChosenInterface => {
    const tenant = entry.tenant === undefined || entry.tenant === "" ? {} : { tenant: entry.tenant };
    return { url, binding, version, dialect: dialect.name, ...tenant };
  };
  if (calling.carrier === "rpc") {
    const address = parseGrpcAddress(entry.url, { cardUrl, tls: grpcTls });
    return address && { dialect, calling, address, interface: describe(entry.url) };
  }
  const url = absoluteUrl(entry.url, cardUrl);
  return url === undefined ? undefined : { dialect, calling, interface: describe(url) };
}

function absoluteUrl(url: string, base: string | undefined): string | undefined {
  if (!canParseUrl(url, base)) return undefined;
  const { href, protocol } = new URL(url, base);
  if (protocol !== "http:" && protocol !== "https:") return undefined;
  // The URL as written in the card, not normalised: a trailing slash may matter to the server.
  return canParseUrl(url) ? url : href;
}

function describeInterface(entry: AgentInterface): string {
  return `${entry.protocolBinding} ${entry.protocolVersion}`;
}

/** With its address where that is all that is wrong with it. */
function describeOffer(entry: AgentInterface, wishes: ChooseOptions): string {
  const supported = findBinding(entry.protocolBinding, entry.protocolVersion);
  const isUsable = supported === undefined || toCandidate(entry, supported, wishes) !== undefined;
  return `${describeInterface(entry)}${isUsable ? "" : ` at "${entry.url}", which is not an address that can be called`}`;
}

function noInterface(card: AgentCard, wishes: ChooseOptions): ConnectionError {
  const offered = card.supportedInterfaces.map((entry) => describeOffer(entry, wishes)).join(", ");
  const supported = supportedBindings()
    .map(({ calling }) => `${calling.binding} ${calling.version}`)
    .join(", ");
  return new ConnectionError(
    "no-interface",
    `The agent "${card.name}" offers ${offered === "" ? "no interface" : offered}; this client supports ${supported}, and nothing matches${describeOptions(wishes)}. ${adviceFor(wishes)}`,
    { permanent: true },
  );
}

function describeOptions({ binding, dialect, version }: ChooseOptions): string {
  const wishes = Object.entries(omitUndefined({ binding, version, dialect })).map(
    ([name, value]) => `the ${name} ${value}`,
  );
  return wishes.length === 0 ? "" : ` with ${wishes.join(" and ")}`;
}

function adviceFor({ binding, dialect, version }: ChooseOptions): string {
  const names = callableDialects().map(({ name }) => name);
  if (dialect !== undefined && !names.includes(dialect)) return `The dialects are ${names.join(", ")}.`;
  return binding === undefined && dialect === undefined && version === undefined
    ? "Ask the agent's operator to offer one of these, or put a bridge in front of it."
    : "Leave the choice to the card by not naming any.";
}
