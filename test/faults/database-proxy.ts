/** Stands between a node and its database, and can take the network away from between them. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

type Direction = "toDatabase" | "toNode";

export class DatabaseProxy {
  readonly #server: Server;
  readonly #pairs = new Set<Readonly<Record<Direction, Socket>>>();
  readonly #silent = new Set<Direction>();
  #refuses = false;

  private constructor(databasePort: number) {
    this.#server = createServer((fromNode) => {
      if (this.#refuses) {
        fromNode.destroy();
        return;
      }
      const fromDatabase = connect(databasePort, "127.0.0.1");
      // Named by where what is read from it goes.
      const pair = { toDatabase: fromNode, toNode: fromDatabase };
      this.#pairs.add(pair);
      const end = () => {
        this.#pairs.delete(pair);
        fromNode.destroy();
        fromDatabase.destroy();
      };
      for (const socket of [fromNode, fromDatabase]) socket.on("error", end).on("close", end);
      fromNode.pipe(fromDatabase);
      fromDatabase.pipe(fromNode);
      for (const direction of this.#silent) pair[direction].pause();
    });
  }

  static async open(databasePort: number): Promise<DatabaseProxy> {
    const proxy = new DatabaseProxy(databasePort);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Nothing arrives any more, and no one is told: what is under way arrives after `heal`, if anyone still waits for it. */
  silence(...directions: readonly Direction[]): void {
    for (const direction of directions) {
      this.#silent.add(direction);
      for (const pair of this.#pairs) pair[direction].pause();
    }
  }

  /** Ends every connection, and refuses new ones. */
  cut(): void {
    this.#refuses = true;
    for (const { toDatabase } of this.#pairs) toDatabase.destroy();
  }

  heal(): void {
    this.#refuses = false;
    this.#silent.clear();
    for (const { toDatabase, toNode } of this.#pairs) {
      toDatabase.resume();
      toNode.resume();
    }
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}
