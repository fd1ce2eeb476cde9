import type { Extension, StoreKind } from "../../core/extension/contract.ts";
import { declareClusterCommands } from "./cli/declare-cluster-commands.ts";
import type { ClusterOptions } from "./config.ts";

const postgres: StoreKind = {
  form: "postgres://user@host/database",
  description:
    "`postgres://user:password@host:5432/database`, in which `?schema=` names the schema for its tables (default: `dragoman`)",
  isShared: true,
  async open(url, { cluster, ...options }) {
    const { openPostgresStore } = await import("./postgres/postgres-store.ts");
    return openPostgresStore(url, { ...options, ...cluster });
  },
};

/** The section as an option of `serve`. */
export interface ClusterSection {
  /** Several nodes on one PostgreSQL; how long a node's lease lasts is `times.leaseMs`. */
  readonly cluster?: ClusterOptions;
}

export const cluster: Extension = {
  name: "cluster",
  commands: declareClusterCommands,
  stores: { postgres, postgresql: postgres },
  config: async () => {
    const { clusterSection } = await import("./config.ts");
    return { sections: { cluster: clusterSection } };
  },
};
