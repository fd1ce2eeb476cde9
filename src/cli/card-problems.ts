import { z } from "zod";

const text = z.string().min(1);
const modes = z.array(text).min(1);

/** What A2A 1.0 requires of a card (section 4.4). Members it does not know are allowed: extensions may add them. */
const cardSchema = z.looseObject({
  name: text,
  description: text,
  version: text,
  supportedInterfaces: z
    .array(
      z.looseObject({
        url: text,
        protocolBinding: text,
        protocolVersion: z.string().regex(/^\d+\.\d+/, "must look like 1.0"),
        tenant: z.string().optional(),
      }),
    )
    .min(1),
  provider: z.looseObject({ url: text, organization: text }).optional(),
  capabilities: z.looseObject({
    streaming: z.boolean().optional(),
    pushNotifications: z.boolean().optional(),
    extendedAgentCard: z.boolean().optional(),
    extensions: z.array(z.looseObject({ uri: z.string().optional(), required: z.boolean().optional() })).optional(),
  }),
  securitySchemes: z.record(z.string(), z.looseObject({})).optional(),
  securityRequirements: z.array(z.looseObject({ schemes: z.record(z.string(), z.unknown()).optional() })).optional(),
  defaultInputModes: modes,
  defaultOutputModes: modes,
  skills: z.array(z.looseObject({ id: text, name: text, description: text, tags: z.array(z.string()) })),
  signatures: z.array(z.looseObject({ protected: text, signature: text })).optional(),
  documentationUrl: z.string().optional(),
  iconUrl: z.string().optional(),
});

/** Why a document is no valid 1.0 card, one sentence each; empty if it is one. */
export function cardProblems(document: unknown): readonly string[] {
  const result = cardSchema.safeParse(document);
  if (result.success) return [];
  return result.error.issues.map((issue) => `${issue.path.join(".") || "The document"}: ${issue.message}.`);
}
