import { type Output, printResult } from "../../../core/cli/output.ts";
import { field } from "../../../core/cli/render/text.ts";
import { canParseUrl } from "../../../core/model/url.ts";
import { copyStore } from "../copy/copy-store.ts";

export interface StoreCopyFlags {
  readonly from: string;
  readonly to: string;
  readonly output?: "text" | "json";
}

export async function storeCopy(output: Output, { from, to, output: format }: StoreCopyFlags): Promise<void> {
  for (const spec of [from, to]) if (canParseUrl(spec)) output.addSecret(new URL(spec).password);
  const copied = await copyStore(from, to, {
    baseDirectory: process.cwd(),
    onProgress: ({ table, rows }) => {
      if (output.canShowStatus) output.status(`Copying ${table}: ${rows} rows`);
    },
  }).finally(() => output.status(undefined));
  const rows = Object.entries(copied.rows);
  const text = () =>
    field("From", copied.from) +
    field("To", copied.to) +
    rows.map(([table, count]) => field(`Rows of ${table}`, count)).join("");
  printResult(output, format, copied, text);
}
