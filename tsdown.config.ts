import { defineConfig } from "tsdown";

export default defineConfig({
  entry: ["src/index.ts", "src/client/index.ts", "src/server/express.ts", "src/cli/main.ts"],
  format: "esm",
  platform: "node",
  target: "node20",
  dts: true,
  unbundle: true,
  clean: true,
  fixedExtension: false,
});
