/** Rejects as soon as the content is larger than `maxBytes`. */
export async function readAtMost(chunks: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > maxBytes) throw new Error(`The file is larger than ${maxBytes} bytes.`);
    parts.push(chunk);
  }
  return Buffer.concat(parts);
}
