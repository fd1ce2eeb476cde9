import type { Extension } from "../../core/extension/contract.ts";
import { declareConformance } from "./cli/declare-conformance.ts";

export const conformance: Extension = { name: "conformance", commands: declareConformance };
