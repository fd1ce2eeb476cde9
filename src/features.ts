/** The features of this package. A feature is deleted with its folder and its lines here. */

import type { Extension } from "./core/extension/contract.ts";
import { installExtensions } from "./core/extension/installed.ts";
import { type ChatSection, chat } from "./features/chat/extension.ts";
import { type ClusterSection, cluster } from "./features/cluster/extension.ts";
import { conformance } from "./features/conformance/extension.ts";
import { gateway } from "./features/gateway/extension.ts";
import { llm } from "./features/llm/extension.ts";
import { type RegistrySection, registry } from "./features/registry/extension.ts";
import { workflow } from "./features/workflow/extension.ts";
import { writers } from "./features/writers/extension.ts";
import { type XiaoyiSection, xiaoyi } from "./features/xiaoyi/extension.ts";

const FEATURES: readonly Extension[] = [conformance, registry, xiaoyi, gateway, workflow, llm, writers, chat, cluster];

/** The sections that they add to the options of `serve`. */
export type FeatureSections = ChatSection & ClusterSection & RegistrySection & XiaoyiSection;

installExtensions(FEATURES);
