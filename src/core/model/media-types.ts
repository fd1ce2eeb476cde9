/** By file extension; of several extensions the usual one is first. */
const MEDIA_TYPES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    txt: "text/plain",
    log: "text/plain",
    md: "text/markdown",
    markdown: "text/markdown",
    html: "text/html",
    htm: "text/html",
    css: "text/css",
    csv: "text/csv",
    tsv: "text/tab-separated-values",
    xml: "application/xml",
    json: "application/json",
    jsonl: "application/x-ndjson",
    yaml: "application/yaml",
    yml: "application/yaml",
    toml: "application/toml",
    js: "text/javascript",
    mjs: "text/javascript",
    pdf: "application/pdf",
    zip: "application/zip",
    gz: "application/gzip",
    tar: "application/x-tar",
    png: "image/png",
    jpg: "image/jpeg",
    jpeg: "image/jpeg",
    gif: "image/gif",
    webp: "image/webp",
    bmp: "image/bmp",
    svg: "image/svg+xml",
    mp3: "audio/mpeg",
    wav: "audio/wav",
    ogg: "audio/ogg",
    m4a: "audio/mp4",
    mp4: "video/mp4",
    webm: "video/webm",
    mov: "video/quicktime",
    doc: "application/msword",
    docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ppt: "application/vnd.ms-powerpoint",
    pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    xls: "application/vnd.ms-excel",
    xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  }),
);

/** `extension` without the dot. Undefined if unknown, since a wrong type is worse than none. */
export function mediaTypeOfExtension(extension: string): string | undefined {
  return MEDIA_TYPES.get(extension.toLowerCase());
}

/** The media type for a file name, by its extension. */
export function mediaTypeOfName(name: string): string | undefined {
  const dot = name.lastIndexOf(".");
  return dot < 0 ? undefined : mediaTypeOfExtension(name.slice(dot + 1));
}

/** The usual extension of a media type, including the dot. */
export function extensionOf(mediaType: string): string | undefined {
  const bare = mediaType.split(";", 1)[0]?.trim().toLowerCase();
  for (const [extension, type] of MEDIA_TYPES) if (type === bare) return `.${extension}`;
  return undefined;
}
