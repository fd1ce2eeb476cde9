/** Model values in canonical form, for property tests: without members at a default that is not written. */

import fc from "fast-check";
import type { AgentCard } from "../../model/card.ts";
import type { StreamEvent } from "../../model/event.ts";
import type { JsonObject, JsonValue } from "../../model/json.ts";
import { type Message, type Part, ROLES } from "../../model/message.ts";
import type { TaskPage, TaskPushNotificationConfig } from "../../model/operation.ts";
import { type Artifact, TASK_STATES, type Task, type TaskStatus } from "../../model/task.ts";

/** JSON that is nearly what a dialect expects: its names and values in the wrong places. */
export function nearMisses(names: readonly string[], values: readonly unknown[]): fc.Arbitrary<unknown> {
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.oneof(
        fc.constantFrom(...values),
        fc.string({ maxLength: 4 }),
        fc.integer(),
        fc.constantFrom(null, true, {}, []),
      ),
      fc.dictionary(fc.constantFrom(...names), tie("value"), { maxKeys: 5, noNullPrototype: true }),
      fc.array(tie("value"), { maxLength: 3 }),
    ),
  }));
  return value;
}

const name = fc.string({ minLength: 1, maxLength: 12 });
const names = fc.array(name, { minLength: 1, maxLength: 3 });
const positive = fc.integer({ min: 1, max: 2 ** 31 - 1 });
const natural = fc.integer({ min: 0, max: 2 ** 31 - 1 });

/** Decoders drop keys that would set a prototype. */
const key = name.filter((any) => any !== "__proto__");

/** Values that survive JSON and its decoders; `-0` does not. */
const value: fc.Arbitrary<JsonValue> = fc
  .jsonValue({ maxDepth: 3 })
  .map((any) => JSON.stringify(any))
  .filter((text) => !text.includes("__proto__"))
  .map((text) => JSON.parse(text) as JsonValue);
const struct: fc.Arbitrary<JsonObject> = fc.dictionary(key, value, { maxKeys: 3 }).map((any) => ({ ...any }));

const timestamp = fc
  .date({ min: new Date(0), max: new Date("2200-01-01T00:00:00.000Z"), noInvalidDate: true })
  .map((date) => date.toISOString());

const base64 = fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString("base64"));

/** `required` members always, the others sometimes. */
function record<R extends object, O extends object>(
  required: { [K in keyof R]: fc.Arbitrary<R[K]> },
  optional: { [K in keyof O]: fc.Arbitrary<O[K]> },
): fc.Arbitrary<R & Partial<O>> {
  const requiredKeys = Object.keys(required) as never[];
  return fc.record({ ...required, ...optional }, { requiredKeys, noNullPrototype: true }) as fc.Arbitrary<
    R & Partial<O>
  >;
}

function exactly<R extends object>(required: { [K in keyof R]: fc.Arbitrary<R[K]> }): fc.Arbitrary<R> {
  return fc.record(required, { noNullPrototype: true }) as fc.Arbitrary<R>;
}

const beside = { metadata: struct, filename: name, mediaType: name };

export const part: fc.Arbitrary<Part> = fc.oneof(
  record({ text: fc.string() }, beside),
  record({ raw: base64 }, beside),
  record({ url: fc.string() }, beside),
  record({ data: value }, beside),
);

const parts = fc.array(part, { minLength: 1, maxLength: 4 });

export const message: fc.Arbitrary<Message> = record(
  { messageId: name, role: fc.constantFrom(...ROLES), parts },
  { contextId: name, taskId: name, metadata: struct, extensions: names, referenceTaskIds: names },
);

export const artifact: fc.Arbitrary<Artifact> = record(
  { artifactId: name, parts },
  { name, description: name, metadata: struct, extensions: names },
);

const status: fc.Arbitrary<TaskStatus> = record({ state: fc.constantFrom(...TASK_STATES) }, { message, timestamp });

export const task: fc.Arbitrary<Task> = record(
  { id: name, contextId: fc.string(), status },
  {
    artifacts: fc.array(artifact, { minLength: 1, maxLength: 3 }),
    history: fc.array(message, { minLength: 1, maxLength: 3 }),
    metadata: struct,
  },
);

const streamEventOf = fc.oneof(
  exactly({ task }),
  exactly({ message }),
  exactly({ statusUpdate: record({ taskId: name, contextId: fc.string(), status }, { metadata: struct }) }),
  exactly({
    artifactUpdate: record(
      { taskId: name, contextId: fc.string(), artifact },
      { append: fc.constant(true), lastChunk: fc.constant(true), metadata: struct },
    ),
  }),
);
export const streamEvent: fc.Arbitrary<StreamEvent> = streamEventOf;

export const pushConfig: fc.Arbitrary<TaskPushNotificationConfig> = record(
  { url: name },
  { id: name, taskId: name, token: name, authentication: record({ scheme: name }, { credentials: name }) },
);

export const sendRequest = record(
  { message },
  {
    tenant: name,
    metadata: struct,
    configuration: record(
      {},
      {
        acceptedOutputModes: names,
        taskPushNotificationConfig: pushConfig,
        historyLength: natural,
        returnImmediately: fc.constant(true),
      },
    ),
  },
);

export const taskPage: fc.Arbitrary<TaskPage> = exactly({
  tasks: fc.array(task, { maxLength: 2 }),
  nextPageToken: fc.string(),
  pageSize: natural,
  totalSize: positive,
});

const requirement = exactly({
  schemes: fc.dictionary(key, exactly({ list: fc.array(name, { maxLength: 2 }) }), {
    maxKeys: 2,
    noNullPrototype: true,
  }),
});
const requirements = fc.array(requirement, { minLength: 1, maxLength: 2 });

export const card: fc.Arbitrary<AgentCard> = record(
  {
    name,
    description: fc.string(),
    supportedInterfaces: fc.array(
      record({ url: name, protocolBinding: name, protocolVersion: name }, { tenant: name }),
      {
        minLength: 1,
        maxLength: 3,
      },
    ),
    version: name,
    capabilities: record(
      {},
      {
        streaming: fc.boolean(),
        pushNotifications: fc.boolean(),
        extendedAgentCard: fc.boolean(),
        extensions: fc.array(
          record({ uri: name }, { description: name, required: fc.constant(true), params: struct }),
          {
            minLength: 1,
            maxLength: 2,
          },
        ),
      },
    ),
    defaultInputModes: fc.array(name, { maxLength: 2 }),
    defaultOutputModes: fc.array(name, { maxLength: 2 }),
    skills: fc.array(
      record(
        { id: name, name, description: fc.string(), tags: fc.array(name, { maxLength: 2 }) },
        { examples: names, inputModes: names, outputModes: names, securityRequirements: requirements },
      ),
      { maxLength: 2 },
    ),
  },
  {
    provider: exactly({ url: fc.string(), organization: fc.string() }),
    documentationUrl: fc.string(),
    iconUrl: fc.string(),
    securityRequirements: requirements,
    securitySchemes: fc.dictionary(
      key,
      fc.oneof(
        exactly({ apiKeySecurityScheme: record({ location: name, name }, { description: name }) }),
        exactly({ httpAuthSecurityScheme: record({ scheme: name }, { bearerFormat: name }) }),
        exactly({ mtlsSecurityScheme: record({}, { description: name }) }),
      ),
      { minKeys: 1, maxKeys: 2, noNullPrototype: true },
    ) as fc.Arbitrary<NonNullable<AgentCard["securitySchemes"]>>,
    signatures: fc.array(record({ protected: name, signature: name }, { header: struct }), {
      minLength: 1,
      maxLength: 2,
    }),
  },
);
