import { type Check, check, checkOver, ensure, fail, notShown } from "../check.ts";
import { type CheckContext, showError } from "../check-context.ts";
import { show } from "../json.ts";
import { isError } from "../peers/errors.ts";
import { extensionsHeader, VERSION_HEADER } from "../peers/peer.ts";

const UNKNOWN_TASK = "conformance-unknown-task";

/** Sends a request without side effects that every version supports: it was understood if the task is not found. */
async function expectUnderstood(
  context: CheckContext,
  headers: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await context.expectError("TASK_NOT_FOUND", "GetTask", { id: UNKNOWN_TASK }, { headers });
}

const UNKNOWN_EXTENSION = "urn:example:conformance:unknown:v1";

export const SERVICE_PARAMETER_CHECKS: readonly Check<CheckContext>[] = [
  check("interface-answers", ["CARD-PROTO-003", "VER-SERVER-001"], async (context) => {
    const answer = await context.call("GetTask", { id: UNKNOWN_TASK });
    if (answer.ok) fail(`GetTask was not refused as TASK_NOT_FOUND: ${show(answer.wire)}`);
    // Such a refusal shows that the request was understood; that its code is wrong is another requirement's concern.
    if (/task\b.*\bnot found/i.test(answer.error.message)) return;
    context.checkError("TASK_NOT_FOUND", answer.error, "GetTask");
  }),
  check("version-not-spoken", "VER-SERVER-002", async (context) => {
    await context.expectError(
      "VERSION_NOT_SUPPORTED",
      "GetTask",
      { id: UNKNOWN_TASK },
      { headers: { [VERSION_HEADER]: "99.0" } },
    );
  }),
  // On gRPC the package name already determines the version.
  checkOver(["JSONRPC", "HTTP+JSON"], "version-absent", "VER-SERVER-003", async (context) => {
    for (const value of [undefined, ""]) {
      const headers = { [VERSION_HEADER]: value };
      const answer = await context.withoutValidation(() => context.call("ListTasks", { pageSize: 1 }, { headers }));
      const how = value === undefined ? "without a version" : "with an empty version";
      // 0.3 has no lists, so the request cannot be mistaken for another one.
      if (answer.ok) continue;
      const { binding } = context.peer;
      const fits =
        isError(answer.error, "VERSION_NOT_SUPPORTED", binding, "1.0") ||
        isError(answer.error, "METHOD_NOT_FOUND", binding, "1.0");
      ensure(fits, `a request ${how} was refused as ${showError(answer.error)}`);
    }
  }),
  check("version-with-patch", "VER-CLIENT-002", (context) => expectUnderstood(context, { [VERSION_HEADER]: "1.0.7" })),
  checkOver(["JSONRPC", "HTTP+JSON"], "parameter-names-without-case", "SVC-PARAM-001", (context) =>
    expectUnderstood(context, { "a2A-vErSiOn": "1.0" }),
  ),
  check("extensions-unknown", ["SVC-PARAM-002", "EXT-FALLBACK-001"], async (context) => {
    const { optionalExtensions, requiredExtensions } = context.declared;
    const wanted = [...requiredExtensions, UNKNOWN_EXTENSION, ...optionalExtensions.map((uri) => `${uri}-conformance`)];
    const name = extensionsHeader(context.version);
    const headers = { [name]: wanted.join(" , ") };
    const answer = await context.withoutValidation(() => context.call("ListTasks", { pageSize: 1 }, { headers }));
    if (!answer.ok) fail(`a request with unknown extensions was refused: ${showError(answer.error)}`);
    const activated = (answer.headers.get("a2a-extensions") ?? "").split(",").map((uri) => uri.trim());
    const foreign = activated.filter((uri) => uri !== "" && !requiredExtensions.includes(uri));
    ensure(foreign.length === 0, `extensions were activated that were not asked for: ${foreign.join(", ")}`);
  }),
  check("extension-required", "CORE-CAP-004", async (context) => {
    if (context.declared.requiredExtensions.length === 0) notShown("the card requires no extension");
    const headers = { [extensionsHeader(context.version)]: undefined };
    const message = context.message("tck-complete-task");
    await context.expectError("EXTENSION_SUPPORT_REQUIRED", "SendMessage", { message }, { headers });
  }),
];
