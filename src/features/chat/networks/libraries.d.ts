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

declare module "@xmpp/client" {
  class Element {
    readonly name: string;
    readonly attrs: Readonly<Record<string, string | undefined>>;
    is(name: string, xmlns?: string): boolean;
    getChild(name: string, xmlns?: string): Element | undefined;
    getChildText(name: string, xmlns?: string): string | null;
    getChildren(name: string, xmlns?: string): Element[];
    getChildElements(): Element[];
    remove(child: Element | string, xmlns?: string): void;
    text(): string;
  }

  interface ClientEvents {
    element: [Element];
    stanza: [Element];
    error: [Error];
    disconnect: [];
    online: [];
  }

  interface Client {
    readonly reconnect: { stop(): void };
    readonly iqCaller: { request(stanza: Element, timeoutMs?: number): Promise<Element> };
    _onData(data: string | Uint8Array): void;
    start(): Promise<unknown>;
    connect(service: string): Promise<unknown>;
    open(options: { readonly domain: string }): Promise<unknown>;
    stop(): Promise<unknown>;
    send(stanza: Element): Promise<void>;
    on<E extends keyof ClientEvents>(event: E, listener: (...args: ClientEvents[E]) => void): this;
    prependListener<E extends keyof ClientEvents>(event: E, listener: (...args: ClientEvents[E]) => void): this;
    off<E extends keyof ClientEvents>(event: E, listener: (...args: ClientEvents[E]) => void): this;
  }

  function client(options: Readonly<Record<string, unknown>>): Client;
  type Child = Element | string | undefined;
  function xml(
    name: string,
    attrs?: Readonly<Record<string, string | undefined>>,
    ...children: readonly (Child | readonly Child[])[]
  ): Element;

  export { type Client, client, type Element, xml };
}
