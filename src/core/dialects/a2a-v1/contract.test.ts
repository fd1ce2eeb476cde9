import { describeDialect } from "../contract-suite.ts";
import { a2aV1 } from "./index.ts";

describeDialect(a2aV1, { exact: true });
