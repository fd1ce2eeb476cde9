import type { Caller } from "./caller.ts";
import type { JsonObject } from "./json.ts";

export interface AgentInterface {
  readonly url: string;
  /** `JSONRPC`, `HTTP+JSON`, `GRPC`, or the URI of a custom binding. */
  readonly protocolBinding: string;
  readonly protocolVersion: string;
  readonly tenant?: string;
}

export interface AgentProvider {
  readonly url: string;
  readonly organization: string;
}

export interface AgentExtension {
  readonly uri: string;
  readonly description?: string;
  readonly required?: boolean;
  readonly params?: JsonObject;
}

export interface AgentCapabilities {
  readonly streaming?: boolean;
  readonly pushNotifications?: boolean;
  readonly extendedAgentCard?: boolean;
  readonly extensions?: readonly AgentExtension[];
}

export interface SecurityRequirement {
  readonly schemes: Readonly<Record<string, { readonly list: readonly string[] }>>;
}

export interface AgentSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly examples?: readonly string[];
  readonly inputModes?: readonly string[];
  readonly outputModes?: readonly string[];
  readonly securityRequirements?: readonly SecurityRequirement[];
}

/** A skill as an agent has it: which schemes can prove a scope is decided by the server. */
export interface ProfileSkill extends AgentSkill {
  /** Scopes that a caller needs to request this skill by its id. */
  readonly scopes?: readonly string[];
}

export interface AgentCardSignature {
  readonly protected: string;
  readonly signature: string;
  readonly header?: JsonObject;
}

/** The card as A2A 1.0 spells it. Security schemes keep their wire form: one `…SecurityScheme` member each. */
export interface AgentCard {
  readonly name: string;
  readonly description: string;
  readonly supportedInterfaces: readonly AgentInterface[];
  readonly provider?: AgentProvider;
  readonly version: string;
  readonly documentationUrl?: string;
  readonly capabilities: AgentCapabilities;
  readonly securitySchemes?: Readonly<Record<string, JsonObject>>;
  readonly securityRequirements?: readonly SecurityRequirement[];
  readonly defaultInputModes: readonly string[];
  readonly defaultOutputModes: readonly string[];
  readonly skills: readonly AgentSkill[];
  readonly signatures?: readonly AgentCardSignature[];
  readonly iconUrl?: string;
}

/** An agent's description of itself; the server adds where and how it can be reached. */
export interface AgentProfile
  extends Pick<AgentCard, "name" | "description" | "version" | "provider" | "documentationUrl" | "iconUrl"> {
  readonly skills: readonly ProfileSkill[];
  readonly inputModes: readonly string[];
  readonly outputModes: readonly string[];
  readonly streaming: boolean;
  readonly extensions: readonly AgentExtension[];
  /** A task that completes without a message repeats the text of its artifacts in one. */
  readonly repeatTextInStatus?: boolean;
  /** What only authenticated callers are shown, the same for all or by caller; absent: no extended card. */
  readonly extended?: ExtendedProfile | ((caller: Caller) => ExtendedAnswer | Promise<ExtendedAnswer>);
}

/** Skills are added to those of the public card; a description replaces its. */
export interface ExtendedProfile {
  readonly description?: string;
  readonly skills?: readonly ProfileSkill[];
}

/** Undefined: there is nothing more for this caller. */
type ExtendedAnswer = ExtendedProfile | undefined;

/** What readers call an agent whose card has no name. */
export const UNNAMED_AGENT = "unnamed agent";
