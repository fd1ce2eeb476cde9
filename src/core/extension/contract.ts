/** The one contract by which features, ours and others', are attached. Types only: every part of the core may read it. */

import type { Command } from "commander";
import type { z } from "zod";
import type { DoctorFlags } from "../cli/commands/doctor.ts";
import type { RunCommand } from "../cli/declare-options.ts";
import type { Check } from "../cli/doctor/checks.ts";
import type { AgentProbe, ListedProbes, ProbeAllOptions, ProbeSurroundings } from "../cli/doctor/probe/index.ts";
import type { Session } from "../cli/session/session.ts";
import type { AgentCaller } from "../client/call/agent-caller.ts";
import type { FetchedCard } from "../client/card/fetch-card.ts";
import type { ConnectOptions, RemoteAgent } from "../client/options.ts";
import type { Records } from "../dialects/carrier.ts";
import type { CallableDialect, Dialect, DialectTools, HttpServing } from "../dialects/contract.ts";
import type { Agent } from "../engine/agent.ts";
import type { EngineTimes } from "../engine/options.ts";
import type { Fields } from "../model/json.ts";
import type { Clock, IdGenerator, Log, Meter } from "../model/ports.ts";
import type { Admission } from "../server/access/admission.ts";
import type { AgentChooser, AgentChooserOptions, FindAgents } from "../server/agent-chooser.ts";
import type { ServedAgentService } from "../server/agent-service.ts";
import type { AuditLog } from "../server/audit/audit-log.ts";
import type { AgentConfig, AgentOverrides, DragomanConfig } from "../server/config/config.ts";
import type { ShownValues } from "../server/config/shown-values.ts";
import type { ServeOptions } from "../server/options.ts";
import type { Upstreams } from "../server/upstreams.ts";
import type { TaskStore } from "../store/contract.ts";
import type { StoreMode } from "../store/open.ts";
import type { FullReply, RequestHead } from "../wire/exchange.ts";
import type { YamlDocument } from "../yaml/document.ts";
import type { Finding, Problem } from "../yaml/problems.ts";

/**
 * What an extension adds. It is read by every command, so that what is only used by some is loaded when it is needed:
 * each group may be a function that imports it.
 */
export interface Extension {
  /** Lower-case letters, digits and dashes; no other extension has it. */
  readonly name: string;
  /** Names of extensions that must be there, too. */
  readonly requires?: readonly string[];
  /** Adds commands to the command line. */
  readonly commands?: (program: Command, run: RunCommand) => void;
  /** Task stores, by the scheme of their URLs. */
  readonly stores?: Readonly<Record<string, StoreKind>>;
  /** What may be written in a configuration. */
  readonly config?: Loaded<ConfigParts>;
  /** Names of the dialects that `calling` has, for help without loading it. */
  readonly dialectNames?: readonly string[];
  /** How agents are called. */
  readonly calling?: Loaded<CallingParts>;
  /** What a server has besides. */
  readonly serving?: Loaded<ServingParts>;
  /** What `dragoman doctor` examines. */
  readonly doctor?: () => Promise<DoctorParts>;
  /** How the command line finds the agent that `-a` names. */
  readonly session?: () => Promise<SessionParts>;
}

export type Loaded<T> = T | (() => Promise<T>);

export interface ConfigParts {
  /** Sections of the configuration, by key; options of `serve` with the same keys. */
  readonly sections?: Readonly<Record<string, ConfigSection>>;
  /** Kinds of agent, by the key of an agent in the configuration. */
  readonly agentKinds?: Readonly<Record<string, AgentKind>>;
  /** Further keys of every agent in the configuration. */
  readonly agentKeys?: Readonly<Record<string, z.ZodType>>;
  /** Values of `use:`. */
  readonly builtinAgents?: Readonly<Record<string, BuiltinAgent>>;
}

export interface CallingParts {
  /** Dialects in which agents are called, by name. */
  readonly dialects?: Readonly<Record<string, CallableDialect>>;
  /** Addresses of agents that are no URLs, by their beginning (`a2a-lite:`), for `connect` and `remote:`. */
  readonly addresses?: Readonly<Record<string, AddressKind>>;
}

export interface ServingParts {
  /** Dialects that a server with these options serves. */
  readonly dialects?: (tools: DialectTools, options: ServeOptions) => readonly Dialect[];
  /** Chooses among agents that were found in registries. */
  readonly createAgentChooser?: (options: AgentChooserOptions) => AgentChooser;
  /** Opens what runs beside the agents, and is closed with the server. */
  readonly open?: (server: ServerHost) => Promise<ServerPart>;
}

export interface DoctorParts {
  readonly checks?: (config: DragomanConfig, flags: DoctorFlags) => readonly Check[] | Promise<readonly Check[]>;
  /** What an agent of a configuration depends on elsewhere. */
  readonly probes?: (name: string, agent: AgentConfig, options: ProbeAllOptions) => readonly AgentProbe[];
  /** Agents elsewhere that belong to the set-up. */
  readonly list?: (options: ProbeAllOptions, around: ProbeSurroundings) => Promise<ListedProbes>;
}

export interface SessionParts {
  /** Undefined if the address is not of its kind. The session closes what it has opened. */
  readonly openAddress?: (session: Session, address: string) => Promise<RemoteAgent> | undefined;
  /** Undefined if it is an address. `read` reads the card at an address. */
  readonly readNamedCard?: (
    session: Session,
    name: string,
    read: (target: string) => Promise<FetchedCard>,
  ) => Promise<FetchedCard>;
}

/** What the parts of extensions may use of the server that opens them. */
export interface ServerHost {
  readonly options: ServeOptions;
  readonly records: Records;
  readonly services: ReadonlyMap<string, ServedAgentService>;
  /** Name of the agent that is also served at the root. */
  readonly defaultName: string;
  readonly upstreams: Pick<Upstreams, "statuses">;
  readonly baseUrl: () => string;
  /** Only this machine can reach the server. */
  readonly local?: boolean;
  /** Whether callers without credentials are served. */
  readonly isOpen: boolean;
  readonly admission: Admission;
  readonly audit: AuditLog | undefined;
  readonly clock: Clock;
  readonly ids: IdGenerator;
  readonly random: () => number;
  readonly log: Log;
  readonly meter: Meter;
  readonly keepAliveMs: number;
  /** Open streams of one owner. */
  readonly streamsPerOwner: number;
}

export interface ServerPart {
  /** Answers requests below `/<prefix>/`, which have passed admission. */
  readonly serving?: HttpServing;
  /** Answers requests for single paths. */
  readonly routes?: ReadonlyMap<string, (request: RequestHead) => Promise<FullReply> | FullReply>;
  /** Looks for agents of other servers, for runs of this one. */
  readonly find?: FindAgents;
  /** Hosts in private networks may be called that `find` finds. */
  readonly allowsPrivateTargets?: boolean;
  /** Lines for `/metrics`. */
  readonly metrics?: () => string;
  /** Called once all of the server is open, before requests are accepted. */
  start?(): void;
  /** Called once requests are accepted; what it returns is closed first of all. */
  listening?(
    agents: readonly { readonly name: string; readonly cardUrl: string }[],
  ): readonly { close(): Promise<void> }[];
  close?(): unknown;
}

/** A section of the configuration. `Parsed` is the output of its schema, `Config` what the server works with. */
// biome-ignore lint/suspicious/noExplicitAny: what one section makes of its own values concerns no other.
export interface ConfigSection<Parsed = any, Config = any> {
  /** Of the file; it has a default or is optional, and has a description. */
  readonly schema: z.ZodType<Parsed>;
  /** Of the options of `serve`. */
  readonly options: z.ZodType;
  /** Paths become absolute, names those of the options. Default: as parsed. */
  readonly toConfig?: (parsed: Parsed, file: ConfigFile) => Config;
  /** Durations of the engine that the section sets. */
  readonly times?: (parsed: Parsed) => Partial<EngineTimes>;
  /** Why a valid section has no effect, or an unexpected one. */
  readonly warnings?: (config: Config, whole: DragomanConfig) => readonly string[];
  /** Rules between keys, checked on the values of the file before they are parsed. */
  readonly check?: (section: unknown, agents: Fields) => readonly Finding[];
  /** What `config show` prints. */
  readonly shown?: (config: Config, whole: DragomanConfig) => ShownValues;
  /** Values to redact in logs. */
  readonly secrets?: (options: Config) => readonly string[];
}

export interface ConfigFile {
  /** A path relative to the file, made absolute. */
  readonly absolute: (file: string) => string;
  /** The agents of the file, as they are written there. */
  readonly agents: Readonly<Record<string, Fields>>;
}

// biome-ignore lint/suspicious/noExplicitAny: what one kind makes of its own keys concerns no other.
export interface AgentKind<Source = any> {
  /** The key itself and those that have a meaning only beside it. All are optional. */
  readonly keys: Readonly<Record<string, z.ZodType>>;
  /** Whether the key stands beside another, whose agent it then makes. */
  readonly accompanies?: (agent: Fields) => boolean;
  /** Rules between keys, checked on the values of the file before they are parsed. */
  readonly check?: (name: string, agent: Fields, agents: Fields) => readonly Finding[];
  /** Keys below which `${…}` is not a variable. */
  readonly verbatim?: boolean;
  /** What is wrong in a value that the schema accepts, at places that only the kind knows. */
  readonly problems?: (parsed: Fields, file: AgentInFile) => readonly Problem[];
  /** What was parsed, with absolute paths. */
  readonly toSource: (parsed: Fields, folder: string) => Source;
  readonly build: (source: Source, around: AgentSurroundings) => Agent | Promise<Agent>;
  /** Whether `build` applies the overrides itself, since its profile changes while it runs. */
  readonly appliesOverrides?: true;
  /** Whether an agent of this kind can be changed only by a restart. */
  readonly isFixed?: true;
  /** What it is, in a few words and without what may be secret: `remote: https://agents.example.com`. */
  readonly summary: (source: Source) => string;
  /** What `config show` prints. */
  readonly shown: (path: string, source: Source) => ShownValues;
  /** Values to redact in logs. */
  readonly secrets?: (source: Source) => readonly string[];
  /** Files whose change makes another agent of it. */
  readonly files?: (source: Source) => readonly string[];
}

/** Where an agent is written. */
export interface AgentInFile {
  readonly name: string;
  readonly agents: readonly string[];
  readonly source: string;
  readonly folder: string;
  position: YamlDocument["position"];
}

/** What an agent may know of the server that it becomes part of. */
export interface AgentSurroundings {
  /** Of the agent, and of all agents. */
  readonly name: string;
  readonly agents: readonly string[];
  readonly overrides: AgentOverrides;
  readonly folder: string;
  readonly strict: boolean;
  readonly limits: { readonly part: number; readonly file?: number | undefined };
  readonly watchdogMs: number | false;
  readonly cancelGraceMs: number;
  readonly log: Log;
  /** Bypass caches, for reloading after a change. */
  readonly fresh: boolean;
}

export interface BuiltinAgent {
  // biome-ignore lint/suspicious/noExplicitAny: its own keys are its own affair.
  readonly create: (options: any) => Agent | Promise<Agent>;
  /** Keys that have a meaning beside `use` of this agent. */
  readonly keys?: Readonly<Record<string, z.ZodType>>;
}

/** Agents that have an address, but no URL. */
export interface AddressKind {
  /** The form of such an address, for messages: `a2a-lite:<network>/<room>#<peer>`. */
  readonly form: string;
  readonly isValid: (address: string) => boolean;
  /** Calls it. */
  readonly connect: (address: string, options: ConnectOptions) => Promise<ConnectedCaller>;
  /** Serves it as an agent (`remote:`). */
  readonly build: (address: string, around: AgentSurroundings) => Agent | Promise<Agent>;
}

export interface ConnectedCaller {
  readonly caller: AgentCaller;
  close(): Promise<void>;
}

interface OpenStoreOptions {
  readonly mode: StoreMode;
  readonly clock: Clock;
  readonly log: Log;
  /** The section `cluster`. */
  readonly cluster: { readonly name?: string; readonly listenUrl?: string; readonly leaseMs?: number };
}

export interface StoreKind {
  /** Of a URL, for messages: `postgres://user@host/database`. */
  readonly form: string;
  /** The same with what it may have, for the documentation. */
  readonly description: string;
  /** Whether several processes can use it at the same time. */
  readonly isShared: boolean;
  readonly open: (url: string, options: OpenStoreOptions) => Promise<TaskStore>;
}
