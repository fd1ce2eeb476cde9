/** Reads `multipart/form-data` (RFC 7578) as the vendors' servers do. */

export interface Multipart {
  readonly fields: Readonly<Record<string, string>>;
  readonly files: readonly MultipartFile[];
}

export interface MultipartFile {
  readonly field: string;
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Buffer;
}

/** Undefined: the body is something else. */
export function parseMultipart(contentType: string | undefined, body: Buffer): Multipart | undefined {
  const boundary = /^multipart\/form-data;.*\bboundary="?([^";]+)/i.exec(contentType ?? "")?.[1];
  if (boundary === undefined) return undefined;
  const fields: Record<string, string> = {};
  const files: MultipartFile[] = [];
  for (const part of splitParts(body, boundary)) {
    const end = part.indexOf("\r\n\r\n");
    const head = part.subarray(0, end).toString("utf8");
    const bytes = part.subarray(end + 4);
    const field = parameter(head, "name") ?? "";
    const name = parameter(head, "filename");
    const mediaType = /^content-type: *(.+)$/im.exec(head)?.[1] ?? "application/octet-stream";
    if (name === undefined) fields[field] = bytes.toString("utf8");
    else files.push({ field, name, mediaType, bytes: Buffer.from(bytes) });
  }
  return { fields, files };
}

function* splitParts(body: Buffer, boundary: string): Generator<Buffer> {
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  const all = Buffer.concat([Buffer.from("\r\n"), body]);
  let start = all.indexOf(delimiter);
  for (;;) {
    start += delimiter.length;
    const end = all.indexOf(delimiter, start);
    if (end < 0) return;
    yield all.subarray(start + 2, end);
    start = end;
  }
}

/** A value without quotes ends where a token does: at white space, a quote or a separator. */
function parameter(head: string, name: string): string | undefined {
  const match = new RegExp(`[; ]${name}=(?:"((?:[^"\\\\\\r\\n]|\\\\.)*)"|([^\\s";,]*))`, "i").exec(head);
  return match?.[1]?.replaceAll(/\\(.)|%22/g, (_, escaped?: string) => escaped ?? '"') ?? match?.[2];
}
