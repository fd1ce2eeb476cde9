/** Does to a store's file what failing disks do. */
import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { openDriver } from "../../src/core/store/sqlite/driver.ts";

const PAGE = 4096;
const INTERIOR = 5;

/** Runs SQL on a file that no process serves. */
export async function changeStore(file: string, ...sql: readonly string[]): Promise<void> {
  const driver = await openDriver(file);
  for (const one of sql) driver.exec(one);
  driver.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  driver.close();
}

/** The pages that hold the rows of a table with row ids; the table must be larger than one page. */
export async function leavesOf(file: string, table: string): Promise<readonly number[]> {
  const driver = await openDriver(file);
  const found = driver
    .prepare<{ root: number }>("SELECT rootpage AS root FROM sqlite_schema WHERE name = ?")
    .get(table);
  driver.close();
  const page = Buffer.alloc(PAGE);
  const descriptor = openSync(file, "r");
  readSync(descriptor, page, 0, PAGE, ((found?.root ?? 1) - 1) * PAGE);
  closeSync(descriptor);
  if (page[0] !== INTERIOR) throw new Error(`${table} is too small, or too large.`);
  const cells = Array.from({ length: page.readUInt16BE(3) }, (_, at) => page.readUInt16BE(12 + 2 * at));
  return [...cells.map((cell) => page.readUInt32BE(cell)), page.readUInt32BE(8)];
}

export function overwritePage(file: string, page: number, fill: number): void {
  const descriptor = openSync(file, "r+");
  writeSync(descriptor, Buffer.alloc(PAGE, fill), 0, PAGE, (page - 1) * PAGE);
  closeSync(descriptor);
}
