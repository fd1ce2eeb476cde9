/** What is used of libraries that come without types. */

declare module "irc-framework" {
  interface IrcMessageEvent {
    readonly nick: string;
    readonly target: string;
    readonly message: string;
    readonly tags: Readonly<Record<string, string>>;
    /** Milliseconds since the epoch, where the server says so. */
    readonly time?: number;
    readonly account?: string;
    readonly from_server: boolean;
  }

  interface Events {
    registered: [];
    join: [{ readonly nick: string; readonly ident: string; readonly hostname: string; readonly channel: string }];
    kick: [{ readonly kicked: string; readonly channel: string; readonly message: string }];
    privmsg: [IrcMessageEvent];
    pong: [{ readonly message: string }];
    "nick in use": [];
    "nick invalid": [];
    "sasl failed": [];
    "irc error": [
      { readonly error: string; readonly reason?: string; readonly channel?: string; readonly nick?: string },
    ];
    "socket close": [Error | false | undefined];
    close: [];
  }

  class Client {
    constructor(options: Readonly<Record<string, unknown>>);
    readonly user: { readonly nick: string };
    readonly network: { supports(option: string): string | boolean | undefined };
    readonly connection: { end(line?: string, force?: boolean): void };
    connect(): void;
    on<E extends keyof Events>(event: E, listener: (...args: Events[E]) => void): this;
    raw(...parts: readonly string[]): void;
    quit(message: string): void;
    caseCompare(one: string, other: string): boolean;
  }

  const irc: { readonly Client: typeof Client };
  export default irc;
  export type { Client, IrcMessageEvent };
}
