import { z } from "zod";
import { AGENT_KINDS, configSchema } from "../src/server/config/schema.ts";

/** The part of JSON Schema that the configuration needs. */
export interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly [key: string]: unknown;
}

/** The schema as the validator has it: what may be written, before variables are put in. */
export function plainSchema(): JsonSchema {
  return z.toJSONSchema(configSchema, { io: "input", target: "draft-7" }) as JsonSchema;
}

/** The schema for editors: wherever a form is asked for, a text with a variable in it will do too. */
export function editorSchema(): JsonSchema {
  const { $schema, ...schema } = plainSchema();
  const properties = { ...schema.properties };
  const agents = properties.agents;
  if (agents === undefined || typeof agents.additionalProperties !== "object") throw new Error("no schema of agents");
  const kinds = AGENT_KINDS.map((kind) => ({ required: [kind] }));
  properties.agents = { ...agents, additionalProperties: { ...agents.additionalProperties, oneOf: kinds } };
  return { $schema, title: "dragoman.yaml", ...allowVariables({ ...schema, properties }) };
}

function allowVariables(schema: JsonSchema): JsonSchema {
  const { properties, additionalProperties, items } = schema;
  if (properties !== undefined || typeof additionalProperties === "object" || items !== undefined) {
    return {
      ...schema,
      ...(properties && {
        properties: Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, allowVariables(value)])),
      }),
      ...(typeof additionalProperties === "object" && { additionalProperties: allowVariables(additionalProperties) }),
      ...(items && { items: allowVariables(items) }),
    };
  }
  const isFree = schema.type === "string" && !schema.enum && !schema.pattern && !schema.format;
  if (isFree || schema.type === "object") return schema;
  const { description, default: standard, ...form } = schema;
  return {
    ...(description !== undefined && { description }),
    ...(standard !== undefined && { default: standard }),
    anyOf: [form, { type: "string", pattern: "\\$\\{.+\\}" }],
  };
}
