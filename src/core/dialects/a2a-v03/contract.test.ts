import { describeDialect } from "../contract-suite.ts";
import { a2aV03 } from "./index.ts";

describeDialect(a2aV03, { exact: true });
