import { authenticateLink, type RegisteredAgent } from "./authentication.ts";
import { CloudPlatform } from "./cloud/cloud-platform.ts";
import { createPlatformServer, type PlatformServer, type Route, readBody, replyJson } from "./http-server.ts";
import type { AgentConnection } from "./link/connection.ts";
import { type ConnectionEvent, LinkPlatform, type Reordering } from "./link/link-platform.ts";
import type { WireStyle } from "./link/wire-format.ts";
import { DEFAULT_TRAITS, type PlatformTraits, type SimulatorOptions } from "./options.ts";
import { Phone, type PhoneOptions } from "./phone.ts";
import { hexDigits, type Random } from "./random.ts";
import { createHostedFiles, Uploads } from "./services/files.ts";
import { type Notification, WEBHOOK_PATH, Webhook } from "./services/webhook.ts";
import type { SimulatedTask } from "./task/simulated-task.ts";
import { createViolations, type Violation } from "./violations.ts";

const TOKEN_PATH = "/oauth2/v3/token";

/** The account service: agents exchange a code for the identity of a user who links an account. */
function createAccountService(random: Random) {
  const codes = new Set<string>();

  /** A code that can be exchanged once. */
  function issueCode(): string {
    const code = hexDigits(random, 32);
    codes.add(code);
    return code;
  }

  const route: Route = async (request, { pathname }, response) => {
    if (request.method !== "POST" || pathname !== TOKEN_PATH) return false;
    const form = new URLSearchParams((await readBody(request))?.toString("utf8") ?? "");
    const isKnown = form.get("grant_type") === "authorization_code" && codes.delete(form.get("code") ?? "");
    if (isKnown)
      replyJson(response, 200, {
        access_token: hexDigits(random, 40),
        token_type: "Bearer",
        expires_in: 3600,
        open_id: hexDigits(random, 24),
      });
    else {
      const description = "code has been used or is unknown";
      replyJson(response, 400, { error: 1101, sub_error: 20155, error_description: description });
    }
    return true;
  };

  return { issueCode, route };
}

function createLinkFaults(platform: LinkPlatform, agentId: string) {
  const forEach = (act: (connection: AgentConnection) => void): void => platform.connections(agentId).forEach(act);
  return {
    /** Closes with a close frame, as the platform does when the agent connects from elsewhere. */
    kick: (code = 1000, reason = "") => forEach((connection) => connection.kick(code, reason)),
    /** Closes without a close frame: the agent sees 1006, but frames it had sent arrive. */
    drop: () => forEach((connection) => connection.drop()),
    /** Aborts the connection; frames in flight in either direction are lost. */
    cut: () => forEach((connection) => connection.cut()),
    /** Connections stay open, but nothing is read or answered any more, pings included. */
    freeze: () => forEach((connection) => connection.freeze()),
    /** Sends every frame to the agent this many additional times, byte for byte. */
    duplicate(copies: number): void {
      platform.copies = copies;
    },
    /** Sends the last frame again, byte for byte. */
    repeatLast: () => platform.repeatLast(),
    /** The default delay is slightly below the 300 ms after which ends are known to be safe. */
    reorder(reordering: Reordering = { aboveBytes: 2048, delayMs: 250 }): void {
      platform.reordering = reordering;
    },
    inOrder(): void {
      platform.reordering = undefined;
    },
    /** Refuses new connections with this status until called without one. */
    refuse(status?: number): void {
      platform.refusal = status;
    },
    send: (text: string) => forEach((connection) => connection.send(text)),
  };
}

export type SimulatorEvent =
  | { readonly kind: "connection"; readonly connection: ConnectionEvent }
  | { readonly kind: "task"; readonly task: SimulatedTask }
  | { readonly kind: "violation"; readonly violation: Violation }
  | { readonly kind: "notification"; readonly phone: Phone; readonly notification: Notification };

/** Measured by the system clock: the injected one may not advance. */
const CLOSE_TIMEOUT_MS = 1_000;

type SimulatorListener = (event: SimulatorEvent) => void;

export class Simulator {
  readonly agent: RegisteredAgent;
  readonly phone: Phone;
  readonly faults: ReturnType<typeof createLinkFaults>;
  readonly link: LinkPlatform;
  readonly cloud: CloudPlatform | undefined;
  readonly uploads: Uploads;
  readonly webhook: Webhook;
  readonly accounts: ReturnType<typeof createAccountService>;
  readonly traits: PlatformTraits;
  readonly #options: SimulatorOptions;
  readonly #violations: ReturnType<typeof createViolations>;
  readonly #files: ReturnType<typeof createHostedFiles>;
  readonly #hosts: readonly [PlatformServer, ...PlatformServer[]];
  readonly #phones = new Map<string, Phone>();
  readonly #listeners = new Set<SimulatorListener>();

  constructor(options: SimulatorOptions) {
    const { clock, random } = options;
    const traits = { ...DEFAULT_TRAITS, ...options };
    const agents = options.agents ?? [generateAgent(random)];
    this.#options = options;
    this.traits = traits;
    this.agent = agents[0];
    this.#violations = createViolations(clock, (violation) => this.#notify({ kind: "violation", violation }));
    const { report } = this.#violations;
    const origin = () => this.origin;
    this.#files = createHostedFiles(random, origin);
    this.uploads = new Uploads({ random, report, agents, origin });
    this.accounts = createAccountService(random);
    const deviceOf = (pushId: string) => this.#phones.get(pushId);
    this.webhook = new Webhook({ ...traits, clock, random, report, agents, deviceOf });
    this.link = new LinkPlatform(traits.hosts, {
      ...traits,
      clock,
      report,
      onConnection: (connection) => this.#notify({ kind: "connection", connection }),
    });
    this.cloud =
      options.http === undefined ? undefined : new CloudPlatform(options.http, { ...traits, clock, random, report });
    this.faults = createLinkFaults(this.link, this.agent.agentId);
    const routes = [this.#files.route, this.uploads.route, this.webhook.route, this.accounts.route];
    const { address = "127.0.0.1", port = 0 } = options;
    const createHost = (index: number): PlatformServer =>
      createPlatformServer({
        address,
        port: port === 0 ? 0 : port + index,
        routes,
        report,
        authenticate: (headers) => authenticateLink(headers, { agents, skewMs: traits.skewMs, now: clock.now() }),
        refusalStatus: () => this.link.refusal,
        onAgent: ({ agentId }, socket) => this.link.accept(agentId, index, socket),
      });
    this.#hosts = traits.hosts === 1 ? [createHost(0)] : [createHost(0), createHost(1)];
    this.phone = this.addPhone({ device: options.device });
  }

  async listen(): Promise<void> {
    for (const host of this.#hosts) await host.listen();
  }

  get origin(): string {
    return this.#hosts[0].origin();
  }

  /** URLs that agents connect to, one per server. */
  get linkUrls(): readonly string[] {
    return this.#hosts.map(({ linkUrl }) => linkUrl());
  }

  get webhookUrl(): string {
    return `${this.origin}${WEBHOOK_PATH}`;
  }

  get accountTokenUrl(): string {
    return `${this.origin}${TOKEN_PATH}`;
  }

  get violations(): readonly Violation[] {
    return this.#violations.list;
  }

  /** How the platform encodes its requests from now on. */
  get style(): WireStyle {
    return (this.cloud ?? this.link).style;
  }

  set style(style: WireStyle) {
    (this.cloud ?? this.link).style = style;
  }

  addPhone(options: PhoneOptions = {}): Phone {
    const { clock, random } = this.#options;
    const { report } = this.#violations;
    const phone = new Phone(
      {
        agentId: this.agent.agentId,
        channel: this.cloud ?? this.link,
        random,
        rules: {
          ...this.traits,
          clock,
          questionsEndStreams: this.cloud !== undefined,
          report,
          isUploaded: (fileId) => this.uploads.has(fileId),
          onChange: (task) => this.#notify({ kind: "task", task }),
        },
        onNotification: (device, notification) => this.#notify({ kind: "notification", phone: device, notification }),
        host: (file) => this.#files.add(file),
      },
      options,
    );
    this.#phones.set(phone.pushId, phone);
    return phone;
  }

  /** Resolves when the agent is connected to every server; immediately if the platform calls the agent instead. */
  ready(): Promise<void> {
    return this.cloud === undefined ? this.link.ready(this.agent.agentId) : Promise.resolve();
  }

  get isReady(): boolean {
    return this.cloud !== undefined || this.link.isReady(this.agent.agentId);
  }

  subscribe(listener: SimulatorListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Closes connections gracefully, but does not wait long for agents. */
  async close(): Promise<void> {
    let stop = (): void => {};
    const late = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, CLOSE_TIMEOUT_MS);
      stop = () => clearTimeout(timer);
    });
    await Promise.race([this.link.close(), late]).finally(stop);
    await Promise.all(this.#hosts.map((host) => host.close()));
  }

  #notify(event: SimulatorEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

export async function createSimulator(options: SimulatorOptions): Promise<Simulator> {
  const simulator = new Simulator(options);
  await simulator.listen();
  return simulator;
}

/** Formatted like the values that the platform's console shows. */
function generateAgent(random: Random): RegisteredAgent {
  return {
    agentId: `agent${hexDigits(random, 32)}`,
    accessKey: hexDigits(random, 20),
    secretKey: hexDigits(random, 32),
    uid: hexDigits(random, 16),
    apiKey: hexDigits(random, 32),
    apiId: hexDigits(random, 12),
  };
}
