/** What an attack is given. All addresses are on loopback. */
export interface Target {
  readonly httpPort: number;
  readonly grpcPort: number;
  /** A port that the configuration of an attack may name, e.g. that of a hostile upstream. */
  readonly ownPort: number;
  /** Folder of the server's configuration and store. */
  readonly directory: string;
  /** Id of the server's process. */
  readonly pid: number;
  /** The credentials of a caller other than the honest one, for attacks by a caller that is admitted. */
  readonly key: string;
  /** How long the attack should last; it is ended by force some seconds later. */
  readonly seconds: number;
  /** Where the attack has prepared something for itself. */
  readonly prepared?: string | undefined;
  /** Counts bytes that were sent. */
  sent(bytes: number): void;
}

export interface Attack {
  readonly name: string;
  /** What is sent, in one line. */
  readonly what: string;
  /** How much memory it may cost, where that is bounded by more than credentials. Default: 100. */
  readonly maxGrowthMib?: number;
  /** The honest caller opens a connection for each call. */
  readonly reconnects?: boolean;
  /** Sections of the configuration that replace or join those of the usual server. */
  readonly config?: (place: Pick<Target, "ownPort" | "directory">) => Readonly<Record<string, unknown>>;
  /** What this machine lacks for it. */
  missing?(): string | undefined;
  /** Called before the server is started. */
  prepare?(directory: string): Promise<Prepared>;
  run(target: Target): Promise<void>;
}

interface Prepared {
  readonly config?: Readonly<Record<string, unknown>>;
  /** For the target of the attack. */
  readonly prepared?: string;
  release(): Promise<void>;
}
