import type { KnipConfig } from "knip";

/**
 * Two runs (`npm run unused`). The first looks at everything: an export needs a user in another file, tests included.
 * The second, `--production`, looks at the product alone: what only tests use belongs into a folder `testing`.
 */
export default {
  workspaces: {
    ".": {
      entry: [
        "src/{index,client,express,cli,features/xiaoyi/index}.ts!",
        "src/core/{agents/isolate,server}/*thread.ts!",
        "scripts/{*,attacks/kit/attacker}.ts!",
        "test/faults/*child.ts",
        "test/terminal/commands.ts",
      ],
      project: [
        "src/**/*.ts!",
        "!src/**/{testing,fixtures,suite}/**!",
        "!src/**/{*.test,contract-suite,crash-child}.ts!",
        "{scripts,test}/**/*.ts",
      ],
    },
    bench: { entry: ["src/contestants/*.ts"], project: ["src/**/*.ts"] },
    examples: { entry: ["*/{agent,main}.ts"], project: ["**/*.ts"] },
  },
  // A unit may be exported for its own test; code that no other code of the product reaches may not.
  ignoreExportsUsedInFile: process.argv.includes("--production"),
  // The programs of docs/recipes.md import these.
  ignoreDependencies: ["@hono/node-server", "fastify", "hono"],
  ignoreBinaries: ["mount", "openssl", "script", "strace", "umount"],
} satisfies KnipConfig;
