import { randomUUID } from "node:crypto";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Artifact } from "../../model/artifact.ts";
import { isDataPart, isTextPart, isUrlPart, type Part } from "../../model/part.ts";
import { CommandError } from "../errors.ts";
import { FileNames } from "../file-names.ts";
import { extensionOf } from "../message-parts.ts";
import { type Output, printJson } from "../output.ts";
import { prettyJson } from "../render-parts.ts";
import { renderIdentity } from "../render-task.ts";
import { jsonForm } from "../report.ts";
import { type ClientFlags, openAgent, type Session, withSession } from "../session.ts";
import { field } from "../text-form.ts";
import { taskIdOf } from "./task-get.ts";

export interface TaskDownloadFlags extends ClientFlags {
  readonly directory?: string;
  readonly artifact?: readonly string[];
  readonly force?: boolean;
  readonly fetchUrls?: boolean;
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

const LARGEST_FETCH_BYTES = 1024 * 1024 * 1024;

export function taskDownload(output: Output, id: string | undefined, flags: TaskDownloadFlags): Promise<void> {
  return withSession(flags, output, async (session) => {
    const taskId = taskIdOf(session, id);
    const agent = await openAgent(session);
    const task = await agent.get(taskId, { historyLength: 0 });
    const artifacts = selectArtifacts(task.artifacts ?? [], flags.artifact);
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
        const bytes = await contentOf(session, part);
        const file = join(directory, names.take(wantedName(artifact, part, index)));
        await save(file, bytes, flags.force === true);
        saved.push({ ...place, file, bytes: bytes.byteLength });
      }
    }
    if (session.settings.output === "json") {
      const { contextId, id: foundId, status } = task;
      printJson(output, { taskId: foundId, contextId, state: status.state, saved, skipped }, jsonForm(session));
    } else {
      for (const { bytes, file } of saved) output.data(field("Saved", `${file} (${bytes} bytes)`));
      for (const { url } of skipped) output.data(field("Skipped", `${url} (--fetch-urls downloads it)`));
      output.data(renderIdentity(task.id, task.contextId, task.status));
    }
    if (saved.length + skipped.length === 0) output.talk("The task has no artifacts.");
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

function wantedName(artifact: Artifact, part: Part, index: number): string {
  if (part.filename !== undefined && part.filename !== "") return part.filename;
  const base = artifact.name || artifact.artifactId;
  const numbered = artifact.parts.length === 1 ? base : `${base}-${index + 1}`;
  const usual = isTextPart(part) ? ".txt" : isDataPart(part) ? ".json" : ".bin";
  const extension = (part.mediaType === undefined ? undefined : extensionOf(part.mediaType)) ?? usual;
  return numbered.toLowerCase().endsWith(extension) ? numbered : `${numbered}${extension}`;
}

async function contentOf(session: Session, part: Part): Promise<Uint8Array> {
  if (isTextPart(part)) return Buffer.from(part.text, "utf8");
  if (isDataPart(part)) return Buffer.from(`${prettyJson(part.data)}\n`, "utf8");
  return isUrlPart(part) ? fetchBytes(session, part.url) : Buffer.from(part.raw, "base64");
}

/** Without any credential: the address is the agent's choice, not the user's. */
async function fetchBytes(session: Session, url: string): Promise<Uint8Array> {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new CommandError("DRAGOMAN_ERR_DOWNLOAD", `${url} is not an http(s) address.`);
  }
  const response = await fetch(url, { signal: session.stop.signal });
  if (!response.ok || response.body === null) {
    throw new CommandError("DRAGOMAN_ERR_DOWNLOAD", `${url} answered ${response.status}.`);
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.byteLength;
    if (size > LARGEST_FETCH_BYTES) throw new CommandError("DRAGOMAN_ERR_DOWNLOAD", `${url} is larger than 1 GiB.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Never in place of another file unless that was asked for; then the old one stays until the new one is whole. */
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
