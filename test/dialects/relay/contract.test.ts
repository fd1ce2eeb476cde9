import { describeDialect } from "../../../src/dialects/contract-suite.ts";
import { relay } from "./index.ts";

describeDialect(relay, { exact: true });
