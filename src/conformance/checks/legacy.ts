import type { InterfaceCheck } from "../check.ts";
import { ensure, fail, notShown } from "../outcome.ts";
import type { HttpPeer } from "../peers/peer.ts";
import type { Scene } from "../scene.ts";

function httpOf({ peer }: Scene): HttpPeer {
  return peer.binding === "HTTP+JSON" ? peer : fail("this is a check of HTTP+JSON");
}

/** What only 0.3 has. */
export const LEGACY_CHECKS: readonly InterfaceCheck[] = [
  {
    name: "old-subscribe-verbs",
    shows: ["V03-SUB-001"],
    bindings: ["HTTP+JSON"],
    async run(scene) {
      scene.needsStreaming();
      // An unknown task is enough: a server that knows the verb says that it is not found, and opens no stream.
      for (const method of ["GET", "POST"]) {
        const body = method === "POST" ? "{}" : undefined;
        const { status, text } = await httpOf(scene).request(method, "/v1/tasks/conformance-unknown:subscribe", body);
        ensure(status !== 405 && status !== 501, `${method} …:subscribe was answered with ${status}`);
        ensure(status !== 404 || namesTask(text), `${method} …:subscribe is no route`);
      }
    },
  },
  {
    name: "old-push-bodies",
    shows: ["V03-PUSH-001"],
    bindings: ["HTTP+JSON"],
    async run(scene) {
      scene.needsPush();
      const { id } = await scene.openTask();
      const url = "https://webhook.conformance.example/notify";
      const config = {
        name: `tasks/${id}/pushNotificationConfigs/conformance`,
        pushNotificationConfig: { id: "conformance", url },
      };
      const bodies = { bare: config, enveloped: { parent: `tasks/${id}`, configId: "conformance", config } };
      for (const [form, body] of Object.entries(bodies)) {
        const path = `/v1/tasks/${encodeURIComponent(id)}/pushNotificationConfigs`;
        const { status, text } = await httpOf(scene).request("POST", path, JSON.stringify(body));
        ensure(status >= 200 && status < 300, `a push config in its ${form} form was answered with ${status} ${text}`);
      }
    },
  },
  {
    name: "old-objects-have-kinds",
    shows: ["V03-KIND-001"],
    bindings: ["JSONRPC"],
    async run(scene) {
      const answer = await scene.call("SendMessage", { message: scene.message("tck-complete-task") });
      if (!answer.ok) notShown("a simple message was refused");
      const kind = Object(answer.wire).kind;
      ensure(kind === "task" || kind === "message", `the answer's kind is ${JSON.stringify(kind)}`);
    },
  },
];

/** Tells a task that is not found from a route that is not. */
function namesTask(text: string): boolean {
  return /task/i.test(text);
}
