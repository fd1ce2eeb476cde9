import type { DoctorParts } from "../../extension/contract.ts";
import { installedExtensions } from "../../extension/installed.ts";

/** What extensions examine. */
export async function doctorParts(): Promise<readonly DoctorParts[]> {
  const loaded = await Promise.all(installedExtensions().map(({ doctor }) => doctor?.()));
  return loaded.filter((parts) => parts !== undefined);
}
