import { randomUUID } from "node:crypto";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { GuardedFetchError } from "../../auth/guarded-fetch/errors.ts";
import { isAllowEntry } from "../../auth/guarded-fetch/target-policy.ts";
import type { AgentCard } from "../../model/card.ts";
import { extensionOf } from "../../model/media-types.ts";
import { isDataPart, isTextPart, isUrlPart, type Part } from "../../model/message.ts";
import type { Artifact } from "../../model/task.ts";
import { safeFileName } from "../../wire/safe-file-name.ts";
import { CommandError, usageError } from "../errors.ts";
import { type Output, printJson } from "../output.ts";
import { prettyJson, renderTaskIds } from "../render/task.ts";
import { field } from "../render/text.ts";
import { agentUrl } from "../session/credentials.ts";
import { jsonLayout } from "../session/report.ts";
import { type ClientFlags, openAgent, type Session, withSession } from "../session/session.ts";
import { requireTaskId } from "./task.ts";

export interface TaskDownloadFlags extends ClientFlags {
  readonly directory?: string;
  readonly artifact?: readonly string[];
  readonly force?: boolean;
  readonly fetchUrls?: boolean;
  readonly allowHost?: readonly string[];
}

interface Saved {
  readonly artifactId: string;
  readonly part: number;
  readonly file: string;
  readonly bytes: number;
}

interface Skipped {
  readonly artifactId: string;
  readonly part: number;
  readonly url: string;
}

const MAX_FETCH_BYTES = 1024 * 1024 * 1024;
const MAX_FETCH_MS = 60 * 60 * 1000;

export function taskDownload(output: Output, id: string | undefined, flags: TaskDownloadFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const taskId = requireTaskId(session, id);
    const hosts = allowedHosts(flags);
    const agent = await openAgent(session);
    const task = await agent.get(taskId, { historyLength: 0 });
    const artifacts = selectArtifacts(task.artifacts ?? [], flags.artifact);
    const links = await createLinkFetch(session, agent.card, hosts);
    const directory = flags.directory ?? ".";
    await mkdir(directory, { recursive: true });
    const saved: Saved[] = [];
    const skipped: Skipped[] = [];
    const names = new FileNames();
    for (const artifact of artifacts) {
      for (const [index, part] of artifact.parts.entries()) {
        const place = { artifactId: artifact.artifactId, part: index + 1 };
        if (isUrlPart(part) && flags.fetchUrls !== true) {
          skipped.push({ ...place, url: part.url });
          continue;
        }
        const bytes = await readContent(part, links);
        const file = join(directory, names.reserve(chooseFileName(artifact, part, index)));
        await save(file, bytes, flags.force === true);
        saved.push({ ...place, file, bytes: bytes.byteLength });
      }
    }
    if (session.settings.output === "json") {
      const { contextId, id: foundId, status } = task;
      printJson(output, { taskId: foundId, contextId, state: status.state, saved, skipped }, jsonLayout(session));
    } else {
      for (const { bytes, file } of saved) output.write(field("Saved", `${file} (${bytes} bytes)`));
      for (const { url } of skipped) output.write(field("Skipped", `${url} (--fetch-urls downloads it)`));
      output.write(renderTaskIds(task.id, task.contextId, task.status));
    }
    if (saved.length + skipped.length === 0) output.info("The task has no artifacts.");
  });
}

function selectArtifacts(all: readonly Artifact[], wanted: readonly string[] | undefined): readonly Artifact[] {
  if (wanted === undefined) return all;
  return wanted.flatMap((name) => {
    const found = all.filter((artifact) => artifact.artifactId === name || artifact.name === name);
    if (found.length === 0) throw new CommandError("DRAGOMAN_ERR_NO_ARTIFACT", `The task has no artifact "${name}".`);
    return found;
  });
}

function chooseFileName(artifact: Artifact, part: Part, index: number): string {
  if (part.filename !== undefined && part.filename !== "") return part.filename;
  const base = artifact.name || artifact.artifactId;
  const numbered = artifact.parts.length === 1 ? base : `${base}-${index + 1}`;
  const usual = isTextPart(part) ? ".txt" : isDataPart(part) ? ".json" : ".bin";
  const extension = (part.mediaType === undefined ? undefined : extensionOf(part.mediaType)) ?? usual;
  return numbered.toLowerCase().endsWith(extension) ? numbered : `${numbered}${extension}`;
}

type LinkFetch = (url: string) => Promise<Response>;

function allowedHosts({ allowHost = [] }: TaskDownloadFlags): readonly string[] {
  for (const host of allowHost) {
    if (!isAllowEntry(host))
      throw usageError(`--allow-host takes a host, an address or a range of them, not "${host}".`);
  }
  return allowHost;
}

/**
 * Sends no credentials and refuses private addresses: the URL was chosen by the agent, not by the user. The agent's own
 * host is allowed, because the user chose it.
 */
async function createLinkFetch(session: Session, card: AgentCard, hosts: readonly string[]): Promise<LinkFetch> {
  const { createGuardedFetch } = await import("../../auth/guarded-fetch/guarded-fetch.ts");
  const agent = agentUrl(session.cardUrl, card);
  const own = agent === undefined ? [] : [new URL(agent).hostname];
  const guarded = createGuardedFetch({
    allow: [...own, ...hosts],
    maxBytes: MAX_FETCH_BYTES,
    timeoutMs: MAX_FETCH_MS,
  });
  return (url) => guarded(url, { signal: session.stop.signal });
}

async function readContent(part: Part, links: LinkFetch): Promise<Uint8Array> {
  if (isTextPart(part)) return Buffer.from(part.text, "utf8");
  if (isDataPart(part)) return Buffer.from(`${prettyJson(part.data)}\n`, "utf8");
  return isUrlPart(part) ? fetchBytes(part.url, links) : Buffer.from(part.raw, "base64");
}

async function fetchBytes(url: string, links: LinkFetch): Promise<Uint8Array> {
  try {
    const response = await links(url);
    if (!response.ok) throw new CommandError("DRAGOMAN_ERR_DOWNLOAD", `${url} answered ${response.status}.`);
    return new Uint8Array(await response.arrayBuffer());
  } catch (error) {
    if (!(error instanceof GuardedFetchError)) throw error;
    const hint = error.code === "forbidden-target" ? "--allow-host HOST permits it, if you trust the agent." : null;
    throw new CommandError("DRAGOMAN_ERR_DOWNLOAD", `${url} was not downloaded. ${error.message}`, hint, {
      cause: error,
    });
  }
}

/** Overwrites an existing file only if requested, and then replaces it once the new one is complete. */
async function save(file: string, bytes: Uint8Array, force: boolean): Promise<void> {
  if (force) {
    const draft = `${file}.${randomUUID().slice(0, 8)}.part`;
    await writeFile(draft, bytes, { flag: "wx" });
    await rename(draft, file);
    return;
  }
  try {
    await writeFile(file, bytes, { flag: "wx" });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    throw new CommandError(
      "DRAGOMAN_ERR_FILE_EXISTS",
      `${file} already exists.`,
      "--force replaces it, -d saves elsewhere.",
    );
  }
}

/** Safe and unique file names: a second `a.txt` of the same download becomes `a-2.txt`. */
export class FileNames {
  // Case-insensitive, like some file systems.
  readonly #taken = new Set<string>();

  reserve(wanted: string): string {
    const name = safeFileName(wanted, "artifact");
    const dot = name.lastIndexOf(".");
    const [stem, extension] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
    let candidate = name;
    for (let count = 2; this.#taken.has(candidate.toLowerCase()); count++) candidate = `${stem}-${count}${extension}`;
    this.#taken.add(candidate.toLowerCase());
    return candidate;
  }
}
