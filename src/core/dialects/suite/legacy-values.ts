/** Model values that dialects older than 0.2 can express without a loss. Small, so that many can be tried. */

import fc from "fast-check";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import { type Message, type Part, ROLES } from "../../model/message.ts";
import { type Artifact, TASK_STATES, type Task } from "../../model/task.ts";

const text = fc.oneof(fc.string({ unit: "binary", maxLength: 8 }), fc.constantFrom("", "null", "茶的历史", "{}", "\n"));
const name = fc.oneof(
  fc.constantFrom("a", "text", "artifact-0", "x/y", "é"),
  fc.string({ minLength: 1, maxLength: 4 }),
);
const objects: readonly JsonObject[] = [
  {},
  { value: null },
  { type: "text", text: "no" },
  { a: [1, { b: false }], c: "" },
  { role: "user", parts: [] },
];
const lists: readonly JsonValue[] = [[], [null], [1, "two", [3]], [{ type: "data" }]];
const metadata = fc.constantFrom(...objects);

interface LegacyValues {
  readonly message: fc.Arbitrary<Message>;
  readonly task: fc.Arbitrary<Task>;
}

export function legacyValues({ lists: takesLists }: { readonly lists: boolean }): LegacyValues {
  const data = fc.constantFrom<JsonValue>(...objects, ...(takesLists ? lists : []));
  const file = { filename: name, mediaType: name, metadata };
  const part = fc.oneof(
    some<Part>({ text }, { metadata }),
    some<Part>({ data }, { metadata }),
    some<Part>({ raw: fc.constantFrom("", "aGk=", "AAEC/w==") }, file),
    some<Part>({ url: text }, file),
  );
  const parts = fc.array(part, { minLength: 1, maxLength: 2 });
  const message = some<Message>(
    { messageId: name, role: fc.constantFrom(...ROLES), parts },
    { contextId: name, taskId: name, metadata },
  );
  const artifact = some<Artifact>({ artifactId: name, parts }, { name, description: name, metadata });
  const states = TASK_STATES.filter((state) => state !== "TASK_STATE_REJECTED" && state !== "TASK_STATE_AUTH_REQUIRED");
  const status = some<Task["status"]>(
    { state: fc.constantFrom(...states) },
    { message, timestamp: fc.constantFrom("2025-05-01T10:00:00.000Z", "1970-01-01T00:00:00.001Z") },
  );
  const task = some<Task>(
    { id: name, contextId: fc.oneof(name, fc.constant("")), status },
    {
      artifacts: fc.uniqueArray(artifact, { minLength: 1, maxLength: 2, selector: ({ artifactId }) => artifactId }),
      history: fc.array(message, { minLength: 1, maxLength: 2 }),
      metadata,
    },
  );
  return { message, task };
}

/** Optional members, each present half of the time. */
function some<T>(required: object, optional: object): fc.Arbitrary<T> {
  const choices = Object.entries(optional).map(([member, values]) =>
    fc.option(values as fc.Arbitrary<unknown>, { nil: undefined, freq: 2 }).map((value) => [member, value] as const),
  );
  return fc
    .tuple(fc.record(required, { noNullPrototype: true }), ...choices)
    .map(([object, ...members]) =>
      Object.assign({ ...(object as object) }, Object.fromEntries(members.filter(([, value]) => value !== undefined))),
    ) as fc.Arbitrary<T>;
}
