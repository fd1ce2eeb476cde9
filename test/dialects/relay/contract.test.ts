import { describeDialect } from "../../../src/core/dialects/contract-suite.ts";
import { relay } from "./index.ts";

describeDialect(relay, { exact: true });
