import { spawnSync } from "node:child_process";
import { mkdtempSync, rmdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Attack } from "./kit/attack.ts";
import { deadline, hold } from "./kit/sockets.ts";
import { LOG_FOLDER } from "./kit/victim.ts";

const MIB = 1_024 * 1_024;
const DISK_MIB = 2;

const mount = (folder: string) =>
  spawnSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_MIB}m`, "tmpfs", folder]).status === 0;
const unmount = (folder: string) => void spawnSync("umount", [folder]);

/** Another program fills the disk that the log is written to. */
export const fullLogDisk: Attack = {
  name: "full-log-disk",
  what: `the disk of the log, ${DISK_MIB} MiB, is full`,
  missing() {
    const folder = mkdtempSync(join(tmpdir(), "dragoman-disk-"));
    const isMounted = mount(folder);
    if (isMounted) unmount(folder);
    rmdirSync(folder);
    return isMounted ? undefined : "the right to mount a small file system";
  },
  async prepare(directory) {
    const folder = join(directory, LOG_FOLDER);
    mount(folder);
    return { release: async () => unmount(folder) };
  },
  async run(target) {
    const isOver = deadline(target);
    // As much as fits: the last write fails.
    await writeFile(join(target.directory, LOG_FOLDER, "filler"), Buffer.alloc(DISK_MIB * MIB)).catch(() => {});
    await hold(isOver);
  },
};
