/** The platform sometimes names a kind of file where a media type belongs, e.g. `jpeg`. Kinds are endings of names, too. */

const MEDIA_TYPE_OF_KIND: ReadonlyMap<string, string> = new Map(
  Object.entries({
    jpeg: "image/jpeg",
    jpg: "image/jpeg",
    png: "image/png",
    bmp: "image/bmp",
    webp: "image/webp",
    gif: "image/gif",
    pdf: "application/pdf",
    txt: "text/plain",
    log: "text/plain",
    md: "text/markdown",
    markdown: "text/markdown",
    csv: "text/csv",
    tsv: "text/tab-separated-values",
    html: "text/html",
    htm: "text/html",
    json: "application/json",
    jsonl: "application/x-ndjson",
    xml: "application/xml",
    yaml: "application/yaml",
    yml: "application/yaml",
    toml: "application/toml",
    doc: "application/msword",
    docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ppt: "application/vnd.ms-powerpoint",
    pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    xls: "application/vnd.ms-excel",
    xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    mp3: "audio/mpeg",
    wav: "audio/wav",
    mp4: "video/mp4",
  }),
);

/** What is no known kind stays as it was. */
export function toMediaType(word: string): string {
  return MEDIA_TYPE_OF_KIND.get(word.toLowerCase()) ?? word;
}

/** By the ending of a file's name. */
export function mediaTypeOfName(name: string): string | undefined {
  const dot = name.lastIndexOf(".");
  return dot < 0 ? undefined : MEDIA_TYPE_OF_KIND.get(name.slice(dot + 1).toLowerCase());
}

const TEXTUAL =
  /^(?:text\/.+|application\/(?:json|x-ndjson|xml|yaml|x-yaml|toml|javascript|x-sh|sql)|[^/]+\/.+\+(?:json|xml|yaml))$/i;

/** Whether such files are made of characters. Parameters are disregarded. */
export function isTextual(mediaType: string): boolean {
  return TEXTUAL.test(mediaType.replace(/\s*;.*$/s, ""));
}
