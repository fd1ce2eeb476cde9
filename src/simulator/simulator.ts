import { hexDigits, type Random } from "./chance.ts";
import { CloudPlatform } from "./cloud/cloud-platform.ts";
import { admitLink, type RegisteredAgent } from "./link/admission.ts";
import { LinkFaults } from "./link/faults.ts";
import { Host } from "./link/host.ts";
import { type ConnectionEvent, LinkPlatform } from "./link/link-platform.ts";
import type { WireStyle } from "./link/wire-style.ts";
import { DEFAULT_TRAITS, type PlatformTraits, type SimulatorOptions } from "./options.ts";
import { Phone, type PhoneOptions } from "./phone/phone.ts";
import { AccountService, TOKEN_PATH } from "./services/account.ts";
import { HostedFiles } from "./services/hosted-files.ts";
import type { Notification } from "./services/notification.ts";
import { Uploads } from "./services/uploads.ts";
import { WEBHOOK_PATH, Webhook } from "./services/webhook.ts";
import type { Screen } from "./task/screen.ts";
import type { SimulatedTask } from "./task/simulated-task.ts";
import { type Violation, Violations } from "./violations.ts";

export type SimulatorEvent =
  | { readonly kind: "connection"; readonly connection: ConnectionEvent }
  | { readonly kind: "task"; readonly task: SimulatedTask }
  | { readonly kind: "violation"; readonly violation: Violation }
  | { readonly kind: "notification"; readonly phone: Phone; readonly notification: Notification };

/** By the clock of the machine: the injected one may stand still. */
const GOODBYE_MS = 1_000;

export type SimulatorListener = (event: SimulatorEvent) => void;

/** The platform and its phones. */
export class Simulator {
  /** The agent that the phones talk to. */
  readonly agent: RegisteredAgent;
  readonly phone: Phone;
  readonly faults: LinkFaults;
  readonly link: LinkPlatform;
  readonly cloud: CloudPlatform | undefined;
  readonly uploads: Uploads;
  readonly webhook: Webhook;
  readonly accounts: AccountService;
  readonly traits: PlatformTraits;
  readonly #options: SimulatorOptions;
  readonly #violations: Violations;
  readonly #files: HostedFiles;
  readonly #hosts: readonly Host[];
  readonly #phones = new Map<string, Phone>();
  readonly #listeners = new Set<SimulatorListener>();

  constructor(options: SimulatorOptions) {
    const { clock, random } = options;
    const traits = { ...DEFAULT_TRAITS, ...options };
    const agents = options.agents ?? [inventAgent(random)];
    this.#options = options;
    this.traits = traits;
    this.agent = agents[0];
    this.#violations = new Violations(clock, (violation) => this.#tell({ kind: "violation", violation }));
    const { report } = this.#violations;
    const origin = () => this.origin;
    this.#files = new HostedFiles(random, origin);
    this.uploads = new Uploads({ random, report, agents, origin });
    this.accounts = new AccountService(random);
    this.webhook = new Webhook({
      clock,
      random,
      report,
      agents,
      skewMs: traits.skewMs,
      spacingMs: traits.pushSpacingMs,
      emptyAnswers: traits.emptyPushAnswers,
      deviceOf: (pushId) => this.#phones.get(pushId),
    });
    this.link = new LinkPlatform(traits.hosts, {
      ...traits,
      clock,
      report,
      onConnection: (connection) => this.#tell({ kind: "connection", connection }),
    });
    const { controlPatienceMs } = traits;
    this.cloud =
      options.http === undefined
        ? undefined
        : new CloudPlatform(options.http, { clock, random, report, controlPatienceMs });
    this.faults = new LinkFaults(this.link, this.agent.agentId);
    const routes = [this.#files.route, this.uploads.route, this.webhook.route, this.accounts.route];
    this.#hosts = Array.from({ length: traits.hosts }, (_, index) => {
      const port = options.port ?? 0;
      return new Host({
        address: options.address ?? "127.0.0.1",
        port: port === 0 ? 0 : port + index,
        routes,
        report,
        admit: (headers) => admitLink(headers, { agents, skewMs: traits.skewMs, now: clock.now() }),
        refusesAll: () => this.link.refusal,
        onAgent: ({ agentId }, socket) => this.link.accept(agentId, index, socket),
      });
    });
    this.phone = this.addPhone(options.device === undefined ? {} : { device: options.device });
  }

  async listen(): Promise<void> {
    for (const host of this.#hosts) await host.listen();
  }

  /** Of everything that is reached over HTTP. */
  get origin(): string {
    return this.#host(0).origin;
  }

  /** Where agents dial; that of the second server comes after it. */
  get linkUrls(): readonly string[] {
    return this.#hosts.map(({ linkUrl }) => linkUrl);
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

  /** How the platform spells what it says from now on. */
  get style(): WireStyle {
    return (this.cloud ?? this.link).style;
  }

  set style(style: WireStyle) {
    (this.cloud ?? this.link).style = style;
  }

  /** Another device, with a conversation of its own. */
  addPhone(options: PhoneOptions = {}): Phone {
    const { clock, random } = this.#options;
    const { report } = this.#violations;
    const phone = new Phone(
      {
        agentId: this.agent.agentId,
        channel: this.cloud ?? this.link,
        random,
        rules: {
          clock,
          profile: this.traits.profile,
          silenceMs: this.traits.silenceMs,
          questionsEndStreams: this.cloud !== undefined,
          textLimit: this.traits.textLimit,
          report,
          isUploaded: (fileId) => this.uploads.has(fileId),
          onChange: (task) => this.#tell({ kind: "task", task }),
        },
        onNotification: (device, notification) => this.#tell({ kind: "notification", phone: device, notification }),
        host: (file) => this.#files.add(file),
      },
      options,
    );
    this.#phones.set(phone.pushId, phone);
    return phone;
  }

  screen(task: SimulatedTask): Screen {
    return task.screen();
  }

  /** Resolves when the agent is there on every server; at once if it is called instead. */
  ready(): Promise<void> {
    return this.cloud === undefined ? this.link.ready(this.agent.agentId) : Promise.resolve();
  }

  get isReady(): boolean {
    return this.cloud !== undefined || this.link.isReady(this.agent.agentId);
  }

  /** What is returned ends it. */
  listenTo(listener: SimulatorListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Agents are taken leave of, but not waited for long. */
  async close(): Promise<void> {
    let stop = (): void => {};
    const late = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, GOODBYE_MS);
      stop = () => clearTimeout(timer);
    });
    await Promise.race([this.link.close(), late]).finally(stop);
    await Promise.all(this.#hosts.map((host) => host.close()));
  }

  #host(index: number): Host {
    const host = this.#hosts[index];
    if (host === undefined) throw new Error("There is no such server.");
    return host;
  }

  #tell(event: SimulatorEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

export async function createSimulator(options: SimulatorOptions): Promise<Simulator> {
  const simulator = new Simulator(options);
  await simulator.listen();
  return simulator;
}

/** In the shape of what the console of the platform shows. */
export function inventAgent(random: Random): RegisteredAgent {
  return {
    agentId: `agent${hexDigits(random, 32)}`,
    accessKey: hexDigits(random, 20),
    secretKey: hexDigits(random, 32),
    uid: hexDigits(random, 16),
    apiKey: hexDigits(random, 32),
    apiId: hexDigits(random, 12),
  };
}
