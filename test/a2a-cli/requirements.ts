/**
 * The requirements of the public a2a-cli specification 0.2 (revision of 2026-08-17), in our words. A test cites the ids
 * that it shows at the beginning of its title; `docs/a2a-cli-report.*` is generated from this list and those titles.
 */

export const SPECIFICATION = { version: "0.2", revision: "2026-08-17" } as const;

export interface Requirement {
  /** Without the prefix `A2ACLI_`. */
  readonly id: string;
  readonly tier: 1 | 2 | 3;
  readonly sections: string;
  readonly text: string;
  /** How it is met, where that is not obvious. */
  readonly note?: string;
  /** Why it does not apply; only the requirements on an Agent Skill may say so. */
  readonly notApplicable?: string;
}

type Row = readonly [id: string, sections: string, text: string, note?: string];

const TIER_1: readonly Row[] = [
  [
    "CARD_GET_001",
    "§10.1, §13",
    "card get resolves a host, a card URL or a file, and selects a transport from the card",
  ],
  ["SEND_001", "§10.2", "send starts an interaction"],
  ["SEND_002", "§10.2, §6.5", "send waits by default; --async returns the identifiers at once"],
  ["SEND_003", "§10.2, §9.2", "--stream follows events, never hangs without streaming, and accepts a lone message"],
  ["SEND_004", "§10.2", "artifacts are rendered; no part is dropped silently"],
  ["SEND_005", "§10.2", "--media-type sets the type of the part before it; otherwise it is inferred"],
  ["SEND_006", "§10.2", "--text, --file and --data repeat and keep their order; --data - reads stdin"],
  ["TASK_GET_001", "§10.3", "task get shows state, artifacts and history"],
  ["TASK_CANCEL_001", "§10.4", "task cancel is idempotent and reports the resulting state"],
  ["INTERACT_001", "§8.1", "--context-id continues an interaction"],
  ["INTERACT_002", "§8.1", "--task-id continues a task, with or without its context; a refused id starts no new task"],
  [
    "INTERACT_003",
    "§4.1, §4",
    "identifiers of the server are never invented, and a context is not taken for a chat session",
  ],
  ["INTERACT_004", "§8.2", "task, context and state are reported with the command that continues"],
  ["INTERACT_005", "§6.3, §4.1, §8.3", "no identifier is kept for a later run; there is no --continue"],
  ["TASK_POLL_001", "§9.3", "task get once, or with --wait until the task is settled"],
  ["TASK_POLL_002", "§9.3", "--poll-interval and --timeout, bounded backoff, interruptible"],
  ["TASK_POLL_003", "§9.1, §9.3", "waiting ends at an interrupted state, and not at an unspecified one"],
  ["TASK_POLL_004", "§9.3", "a wait whose stream fails continues by polling"],
  ["OUT_001", "§11.1, §11.5, §8.2", "responses name task, context and state; payload on stdout, messages on stderr"],
  ["OUT_002", "§11.3, App. B", "-o json is one terminal protocol object, never lines by itself"],
  ["OUT_003", "§11.3, §11.4, App. B", "-o json --stream is one object per line, a terminating error the last"],
  [
    "OUT_004",
    "§11.4, App. B, App. D",
    "errors have A2A's names or the specification's codes over every transport, with a hint",
    "Codes of our own begin with DRAGOMAN_ERR_.",
  ],
  [
    "OUT_005",
    "§11.2, §6.1",
    "text is one Label: value per line and blocks closed by a blank line, without control sequences",
    "Only task list has another form, a table, and only where stdout is a terminal and no -o is given; in a pipe, a file or with -o text it prints the fields.",
  ],
  ["OUT_006", "§11.5", "--async still prints task and context"],
  ["EXIT_001", "§11.6, App. D", "exit codes 0, 1, 2 and the reserved 3, 4, 5 agree with the error reported"],
  ["EXIT_002", "§6.6, §11.6", "a turn that was conducted exits 0 whatever the task's outcome, which a warning names"],
  ["AUTH_001", "§12.1", "bearer token and API key, by flag or variable, go where the card's schemes say"],
  ["AUTH_002", "§12.1, §6.5", "every credential flag has a variable, and its exposure is documented"],
  ["AUTH_003", "§12.1, §6.5", "credentials over an unverified connection cause a prominent warning"],
  ["AUTH_004", "§12.1, §7.2", "credentials are redacted in all diagnostics, --debug included"],
  ["TX_001", "§13.1", "the transport is chosen from the card, in its order"],
  ["TX_002", "§13.1, §6.5", "the first supported interface, unless --transport, repeated in order, prefers others"],
  ["TX_003", "§13.1", "the tenant of the chosen interface is in every request, and none where it has none"],
  [
    "VER_001",
    "§13.2",
    "the version is signalled on every request; nothing below 1.0 without an explicit request",
    "The error for an older agent names the flag, e.g. --a2a-version 0.3.",
  ],
  ["DEFAULT_001", "§6.5", "the defaults of the specification, each overridable by a flag and shown by --help"],
  ["CONFIG_001", "§8.3", "what is kept is in a conventional place, private, and shown by config show"],
  ["CLI_001", "§7.1, §7.2, §6.5", "help, --help with effective defaults, -v and --version"],
  ["SKILL_001", "§14.1, §14.2", "one lean Agent Skill, if any"],
  ["SKILL_002", "§14.3", "the skill, if any, does not restate the specification"],
];

const TIER_2: readonly Row[] = [
  ["CARD_GET_002", "§10.1", "card get --validate checks the card against A2A 1.0"],
  ["TASK_LIST_001", "§7.1, App. A", "task list with pages, filtered by status and context"],
  ["TASK_SUBSCRIBE_001", "§7.1, §9.2", "task subscribe follows a task's events"],
  ["TASK_SUBSCRIBE_002", "§9.4, §9.2", "a stream that breaks is resumed; its first event is the whole task"],
  ["AUTH_005", "§12.2", "auth login with a device code"],
  ["AUTH_006", "§12.2", "auth login with client credentials"],
  ["AUTH_007", "§12.2", "tokens are stored safely and used by later commands"],
  ["TX_004", "§13.1", "two transports or more, selectable"],
  ["VER_003", "§13.3", "streaming, push and the extended card are used only if the card offers them"],
  [
    "CONFIG_002",
    "§8.3",
    "flag, variable, local file, global file, default, in that order; config show names the source",
  ],
  ["DOWNLOAD_001", "§7.1", "task download saves artifacts"],
  [
    "OUT_007",
    "§7.2",
    "--debug shows the messages exchanged on the wire, on stderr",
    "Messages of gRPC, which are binary, are shown as JSON.",
  ],
  [
    "CONFORM_001",
    "§7.1",
    "conformance checks a live agent against the A2A TCK",
    "The requirements of the TCK, by their ids, in a suite of our own that needs no Python.",
  ],
  ["CLI_002", "§7.1", "completion prints a script for bash, zsh or fish"],
  ["PUSH_001", "§7.1, App. A", "task push-config create, get, list and delete"],
];

const TIER_3: readonly Row[] = [
  ["CARD_GET_003", "§10.1, §12.4", "the extended card is fetched only with a scheme of the public card"],
  [
    "AUTH_008",
    "§12.4",
    "no credential goes to a card endpoint that has not declared a scheme for it",
    "The public card is always requested without credentials first. A client certificate is presented to a server that asks for one in the handshake.",
  ],
  ["CARD_GET_004", "§10.1", "signatures are verified, and reported as verified, unverifiable or absent"],
  ["CARD_GET_005", "§10.1", "an entry of a registry is accepted wherever --agent-card takes a reference"],
  ["PUSH_002", "§9.2", "a local webhook receives push notifications", "dragoman push inbox"],
  ["CHAT_001", "§8.1, §7.1", "chat carries context and task across turns"],
  ["TX_005", "§13.1", "gRPC"],
  ["AUTH_009", "§12.3", "mutual TLS", "--client-cert and --client-key, over HTTP and gRPC"],
  ["AUTH_010", "§12.3", "OpenID Connect"],
  ["AUTH_011", "§12.3", "a task that requires an authorisation is followed until it continues"],
  ["DEMO_SERVER_001", "§7.1, §3", "demo-server is an agent to practise with"],
  [
    "VER_002",
    "§13.3, A2A §4.6",
    "extensions that the card requires are declared",
    "One that is not implemented is declared only if the user names it with --svc-param; a warning and the error say so.",
  ],
];

const NO_SKILL = "The tool ships no Agent Skill.";

export const REQUIREMENTS: readonly Requirement[] = [TIER_1, TIER_2, TIER_3].flatMap((rows, index) =>
  rows.map(([id, sections, text, note]) => ({
    id,
    tier: (index + 1) as Requirement["tier"],
    sections,
    text,
    ...(note === undefined ? {} : { note }),
    ...(id.startsWith("SKILL_") ? { notApplicable: NO_SKILL } : {}),
  })),
);

/** The defaults of section 6.5, with the flag that overrides each. */
export const DEFAULTS: Readonly<Record<string, string>> = {
  transport_server_preference_order: "--transport",
  task_completion_wait_by_default: "--async",
  output_human_readable_text: "-o json",
  detail_level_concise: "--verbose",
  protocol_version_highest_mutual: "--a2a-version",
  transport_security_tls_on: "--insecure, which warns",
};
