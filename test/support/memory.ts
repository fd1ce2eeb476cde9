/** Memory in use after garbage was collected. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

export function usedMebibytes(): number {
  // Buffers whose owners the first collection found dead are given back by the second.
  collect();
  collect();
  const { external, heapUsed } = process.memoryUsage();
  return (external + heapUsed) / 2 ** 20;
}
