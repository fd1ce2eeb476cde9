import { readFile } from "node:fs/promises";
import { CommandError, usageError } from "../../../core/cli/errors.ts";
import { ifGiven, readDuration, readInteger } from "../../../core/cli/flag-values.ts";
import { type Output, printJson } from "../../../core/cli/output.ts";
import { field, quoteForShell, table } from "../../../core/cli/render/text.ts";
import { jsonLayout } from "../../../core/cli/session/report.ts";
import { type ClientFlags, type Session, withSession } from "../../../core/cli/session/session.ts";
import { locateCard } from "../../../core/client/card/addresses.ts";
import { redactUrl } from "../../../core/client/errors.ts";
import { parseReference } from "../../../core/client/reference.ts";
import type { AgentCard } from "../../../core/model/card.ts";
import { isObject, omitUndefined } from "../../../core/model/json.ts";
import { safeLine } from "../../../core/model/safe-text.ts";
import { canParseUrl } from "../../../core/model/url.ts";
import { findAgents } from "../client/find.ts";
import type {
  RegistrationInput,
  RegistryClient,
  RegistryDetails,
  RegistryEntry,
  RegistryEvent,
  RegistryFilter,
  RegistryResult,
} from "../client/types.ts";
import { findRegistry, notFoundError, openRegistry, requireOne, toRegistryFailure } from "./session.ts";

interface FilterFlags extends ClientFlags {
  readonly skill?: readonly string[];
  readonly tag?: readonly string[];
  readonly binding?: readonly string[];
  readonly mode?: readonly string[];
  readonly health?: readonly string[];
  readonly pageSize?: string;
  readonly pageToken?: string;
}

interface OpenedRegistry {
  readonly session: Session;
  readonly registry: RegistryClient;
  readonly url: string;
}

const CREDENTIALS_HINT = "Set --api-key or --bearer, or A2ACLI_API_KEY or A2ACLI_BEARER.";

function withRegistry(
  output: Output,
  flags: ClientFlags,
  body: (opened: OpenedRegistry) => Promise<void>,
): Promise<void> {
  return withSession(flags, output, async (session) => {
    const { url } = await findRegistry(session.settings.registry);
    try {
      await body({ session, url, registry: await openRegistry(session, url, true) });
    } catch (error) {
      throw toRegistryFailure(error, CREDENTIALS_HINT);
    }
  });
}

export function registryList(output: Output, flags: FilterFlags & { readonly all?: boolean }): Promise<void> {
  if (flags.all === true && flags.pageToken !== undefined)
    throw usageError("--all and --page-token are mutually exclusive.");
  return withRegistry(output, flags, async ({ registry, session, url }) => {
    const query = { filter: readFilter(flags), ...readPage(flags) };
    if (flags.all !== true) {
      const { items, pageToken, total } = await registry.listPage(query);
      printEntries(session, { items, pageToken, total }, items);
      if (session.settings.output === "text") printEnd(session, "list", items.length, { pageToken, total, url });
      return;
    }
    const items: RegistryEntry[] = [];
    for await (const entry of registry.list(query)) items.push(entry);
    printEntries(session, { items, total: items.length }, items);
    if (session.settings.output === "text") printEnd(session, "list", items.length, { url });
  });
}

export function registrySearch(
  output: Output,
  words: readonly string[],
  flags: FilterFlags & { readonly local?: boolean },
): Promise<void> {
  return withRegistry(output, flags, async ({ registry, session, url }) => {
    const page = await registry.search({
      text: words.join(" "),
      filter: readFilter(flags),
      ...readPage(flags),
      federation: flags.local === true ? ("none" as const) : undefined,
    });
    const { pageToken, results, unanswered = [] } = page;
    printEntries(session, page, results);
    for (const peer of unanswered) output.warn(`${redactUrl(peer.url)} did not answer: ${peer.reason}`);
    if (session.settings.output === "text") printEnd(session, "search", results.length, { pageToken, url });
  });
}

interface AddFlags extends ClientFlags {
  readonly ttl?: string;
  readonly public?: boolean;
  readonly probe?: boolean;
}

const MAX_TTL_SECONDS = 604_800;

export function registryAdd(output: Output, target: string, flags: AddFlags): Promise<void> {
  return withRegistry(output, flags, async ({ registry, session }) => {
    const agent: RegistrationInput = {
      ...(await readTarget(target)),
      ttlSeconds: ifGiven(flags.ttl, readTtl),
      probe: flags.probe,
      visibility: flags.public === true ? ("public" as const) : undefined,
    };
    printDetails(session, await registry.register(agent));
  });
}

function readTtl(text: string): number {
  const seconds = Math.ceil(readDuration("--ttl", text) / 1000);
  if (seconds <= MAX_TTL_SECONDS) return seconds;
  throw usageError(`--ttl must be at most 7d, not "${text}".`);
}

/** The registry fetches what is at a URL; a file is only here. */
async function readTarget(target: string): Promise<{ readonly url: string } | { readonly card: AgentCard }> {
  const place = isFileName(target) ? { kind: "file" as const, path: target } : locateCard(target);
  if (place.kind === "web") return { url: place.address };
  const text = await readFile(place.path, "utf8").catch((error: unknown) => {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    throw new CommandError("A2ACLI_ERR_CARD_NOT_FOUND", `The card file ${place.path} could not be read${code}.`);
  });
  const card = parseOrUndefined(text);
  if (!isObject(card))
    throw new CommandError("A2ACLI_ERR_CARD_INVALID", `The file ${place.path} is not a JSON object.`);
  // It is for the registry to say what is wrong with it, in whatever version it is written.
  return { card: card as object as AgentCard };
}

/** Also if the file does not exist: the name of a card that a host serves has the host before it, with a dot or a port. */
function isFileName(target: string): boolean {
  return /^[^/\\.:]+[/\\].*\.json$|^[^/\\:]+\.json$/i.test(target);
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function registryRemove(output: Output, agent: string, flags: ClientFlags): Promise<void> {
  return withRegistry(output, flags, async (opened) => {
    const { displayName, id } = await findOne(opened, agent);
    await opened.registry.remove(id);
    const { session } = opened;
    if (session.settings.output === "json") printJson(output, { id, removed: true }, jsonLayout(session));
    else output.write(field("Removed", `${id} (${displayName})`));
  });
}

export function registryShow(output: Output, agent: string, flags: ClientFlags): Promise<void> {
  return withRegistry(output, flags, async (opened) => {
    const { id } = await findOne(opened, agent);
    printDetails(opened.session, await opened.registry.get(id));
  });
}

/** By id or name. Peers have ids of their own, so that what they have cannot be shown or removed here. */
async function findOne(
  { registry, url }: OpenedRegistry,
  agent: string,
): Promise<RegistryEntry & { readonly id: string }> {
  // An id may have dots, which no name has.
  const reference = parseReference(agent) ?? { registered: agent };
  const found = requireOne(reference, await findAgents(registry, reference, undefined), url);
  if (found.id === undefined || ("source" in found && found.source !== undefined && !isOf(url, String(found.source)))) {
    throw notFoundError(reference, url);
  }
  return { ...found, id: found.id };
}

function isOf(registry: string, source: string): boolean {
  return canParseUrl(source) && new URL(source).origin === new URL(registry).origin;
}

export function registryWatch(output: Output, flags: ClientFlags & { readonly after?: string }): Promise<void> {
  return withRegistry(output, flags, async ({ registry, session }) => {
    const { settings, stop } = session;
    try {
      for await (const event of registry.watch({ after: flags.after, signal: stop.signal })) {
        if (settings.output === "json") printJson(output, event, "line");
        else output.write(renderEvent(event));
      }
    } catch (error) {
      // There is nothing else that could end it.
      if (stop.reason === undefined) throw error;
    }
  });
}

function renderEvent({ data, id = "", kind, number }: RegistryEvent): string {
  const { at, displayName, health, message } = data;
  const known = [at, kind, id, displayName ?? message, health].flatMap((value) =>
    value === undefined ? [] : `${value}`,
  );
  return `${safeLine([number, ...known].join("  "))}\n`;
}

function readFilter({ binding, dialect: given, health, mode, skill, tag }: FilterFlags): RegistryFilter {
  // Here the flag is repeated; elsewhere it is a setting with one value.
  const dialect = typeof given === "object" ? given : undefined;
  return omitUndefined({ skill, tag, dialect, binding, mode, health });
}

function readPage({ pageSize, pageToken }: FilterFlags) {
  return { pageToken, pageSize: ifGiven(pageSize, (text) => readInteger("--page-size", text, 1, 100)) };
}

function printEntries(session: Session, page: object, entries: readonly (RegistryEntry | RegistryResult)[]): void {
  const { output, settings } = session;
  if (settings.output !== "json") output.write(table(entries.map(toRow)));
  else if (settings.stream) for (const entry of entries) printJson(output, entry, "line");
  else printJson(output, page, "document");
}

function toRow(entry: RegistryEntry | RegistryResult): readonly string[] {
  const { capabilities = [], displayName, id, identifier, metadata = {}, url } = entry;
  const place = url === undefined ? "(inline card)" : redactUrl(url);
  return [id ?? identifier, `${metadata.health ?? ""}`, displayName, capabilities.join(","), place];
}

interface End {
  readonly pageToken?: string | undefined;
  readonly total?: number | undefined;
  readonly url: string;
}

function printEnd({ output, settings }: Session, command: string, count: number, { pageToken, total, url }: End): void {
  output.write(field("Agents", total === undefined ? count : `${count} of ${total}`));
  if (count === 0) output.info(`The registry is ${redactUrl(url)}; --registry names another.`);
  if (pageToken === undefined) return;
  const registry = settings.registry === undefined ? [] : ["--registry", quoteForShell(settings.registry)];
  const next = ["dragoman registry", command, ...registry, "--page-token", quoteForShell(pageToken)];
  output.write(field("Next Page", next.join(" ")));
}

function printDetails(session: Session, details: RegistryDetails): void {
  const { output, settings } = session;
  if (settings.output === "json") printJson(output, details, jsonLayout(session));
  else output.write(renderDetails(details));
}

function renderDetails(details: RegistryDetails): string {
  const {
    capabilities = [],
    description,
    displayName,
    id,
    identifier,
    metadata = {},
    registration = {},
    tags = [],
    url,
  } = details;
  const known: readonly (readonly [label: string, value: unknown])[] = [
    ["ID", id],
    ["Name", displayName],
    ["Description", description],
    ["Identifier", identifier],
    ["Card", url === undefined ? "inline" : redactUrl(url)],
    ["Version", details.version],
    ["Skills", capabilities.join(", ")],
    ["Tags", tags.join(", ")],
    ["Health", metadata.health],
    ["Visibility", metadata.visibility],
    ["Dialects", metadata.dialects],
    ["Bindings", metadata.bindings],
    ["Signature", metadata.signature],
    ["Checked", registration.checkedAt],
    ["Expires", registration.expiresAt ?? metadata.expiresAt],
    ["Problem", registration.problem],
    ["Held Back", heldBackOf(registration.heldBack)],
  ];
  const fields = known.map(([label, value]) =>
    value === undefined || value === "" ? "" : field(label, String(value)),
  );
  return [...fields, ...findingsOf(registration.findings)].join("");
}

function heldBackOf(value: unknown): string | undefined {
  if (!isObject(value)) return undefined;
  const changes = Array.isArray(value.changes) ? value.changes.join("; ") : "";
  return `${changes} (since ${value.since}); register the agent again to accept it`;
}

function findingsOf(value: unknown): readonly string[] {
  const findings = Array.isArray(value) ? value.filter(isObject) : [];
  return findings.map(({ message, requirement }) => field("Finding", `${requirement ?? ""} ${message ?? ""}`.trim()));
}
