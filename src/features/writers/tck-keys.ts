import { z } from "zod";
import { optional } from "../../core/yaml/value-types.ts";

/** Keys beside `use: tck`. */
export const tckKeys = {
  streaming: optional(z.boolean(), "With `use: tck`: whether the agent streams; default: `true`."),
  requiredExtension: optional(
    z.string().regex(/^[A-Za-z][A-Za-z0-9+.-]*:\S+$/, { error: "must be a URI" }),
    "With `use: tck`: URI of an extension that callers must activate; default: none.",
  ),
};
