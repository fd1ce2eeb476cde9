import type { Extension } from "../../core/extension/contract.ts";
import type { ServeOptions } from "../../core/server/options.ts";
import { declareSimulate } from "./cli/declare-simulate.ts";
import type { XiaoyiOptions } from "./server/open-xiaoyi.ts";

/** The section as an option of `serve`. */
export interface XiaoyiSection {
  /** How agents are connected to Huawei's assistant Xiaoyi. */
  readonly xiaoyi?: XiaoyiOptions;
}

export const xiaoyi: Extension = {
  name: "xiaoyi",
  commands: declareSimulate,
  config: async () => {
    const { linkKind, xiaoyiSection } = await import("./server/config.ts");
    return { sections: { xiaoyi: xiaoyiSection }, agentKinds: { link: linkKind } };
  },
  dialectNames: ["xiaoyi-http"],
  calling: async () => {
    const { xiaoyiHttp } = await import("./codec/call/call-http.ts");
    return { dialects: { "xiaoyi-http": xiaoyiHttp } };
  },
  serving: async () => {
    const { createXiaoyi } = await import("./server/open-xiaoyi.ts");
    return { dialects: (tools, options) => createXiaoyi(tools, options as ServeOptions & XiaoyiSection) };
  },
  doctor: async () => (await import("./cli/doctor.ts")).doctorParts,
};
