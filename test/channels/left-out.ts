import { hasPostgres } from "../../src/features/cluster/postgres/testing/start-postgres.ts";
import { hasServer, SERVER_PACKAGES } from "./servers.ts";

/** At the end of a run: which real servers it did without. */
export default function reportLeftOut(): (() => void) | undefined {
  const chat = SERVER_PACKAGES.filter((name) => !hasServer(name));
  const missing = [...(hasPostgres() ? [] : ["postgresql"]), ...chat];
  if (missing.length === 0) return undefined;
  return () => {
    const [verb, names] = [missing.length === 1 ? "is" : "are", missing.join(", ")];
    process.stdout.write(
      `\nLeft out: tests with real servers, because ${names} ${verb} not installed (apt-get install ${missing.join(" ")})\n`,
    );
  };
}
