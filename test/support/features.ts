/** Tests of single modules start where programs do: with all features. */
import "../../src/features.ts";
import { loadExtensions } from "../../src/core/extension/installed.ts";

await loadExtensions("config", "calling", "serving");
