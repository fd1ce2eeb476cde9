import { defineConfig } from "tsdown";

/**
 * Files that are loaded together are one file: reading hundreds of small ones was most of what starting cost. Entries
 * keep their places, and shared chunks lie one folder deep as the sources do, so that paths relative to a module hold.
 */
export default defineConfig({
  entry: {
    index: "src/index.ts",
    "client/index": "src/client/index.ts",
    "server/express": "src/server/express.ts",
    xiaoyi: "src/xiaoyi.ts",
    "cli/main": "src/cli/main.ts",
  },
  format: "esm",
  platform: "node",
  target: "node20",
  dts: true,
  clean: true,
  fixedExtension: false,
  outputOptions: { chunkFileNames: "chunks/[name]-[hash].js" },
  // Its package loads error messages in fifty languages; here only what is used comes along.
  noExternal: ["zod"],
  copy: [{ from: "node_modules/zod/LICENSE", to: "dist/licenses", rename: "zod.txt" }],
});
