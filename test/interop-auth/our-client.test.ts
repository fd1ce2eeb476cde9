/** Our client and command line log in to servers of the official libraries that demand a bearer token. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type CredentialProvider, connect, ProtocolError } from "../../src/client.ts";
import { runCli, stopAll } from "../../src/core/cli/testing/run-cli.ts";
import { driveDragoman } from "../interop/clients/dragoman.ts";
import { TOKEN } from "../interop/driver.ts";
import { Gates } from "../interop/gates.ts";
import { BINDINGS, SDK_V1, SDK_V03 } from "../interop/pairs.ts";
import { collect, says, sendTask } from "../interop/send-helpers.ts";
import type { RunningServer } from "../interop/servers/profile.ts";
import { serveSdkV1 } from "../interop/servers/sdk-v1.ts";
import { serveSdkV03 } from "../interop/servers/sdk-v03.ts";

const ONCE = { attempts: 1, baseMs: 1, capMs: 1 };

beforeAll(() => {
  for (const method of ["error", "warn", "info", "log"] as const)
    vi.spyOn(console, method).mockImplementation(() => {});
});
afterAll(stopAll);

const SERVERS = [
  [SDK_V1, serveSdkV1, "1.0"],
  [SDK_V1, serveSdkV1, "0.3"],
  [SDK_V03, serveSdkV03, "0.3"],
] as const;

for (const [name, open, version] of SERVERS) {
  describe(`${name} in ${version}`, () => {
    let server: RunningServer;
    beforeAll(async () => {
      server = await open({ push: true, guarded: true }, new Gates());
    });
    afterAll(() => server.close());

    describe.each(BINDINGS)("over %s", (binding) => {
      it("admits callers with the token", async () => {
        const driver = await driveDragoman(server.url, binding, version);
        const { id } = await sendTask(driver, says("echo hello"));
        expect((await driver.get(id)).status.state).toBe("TASK_STATE_COMPLETED");
        expect((await collect(driver.stream(says("echo hello")))).length).toBeGreaterThan(1);
      });

      it.each<Record<string, string>>([{}, { authorization: "Bearer wrong" }])(
        "refuses %j, and that is said as what it is",
        async (headers) => {
          const driver = await driveDragoman(server.url, binding, version, headers);
          const asked = [
            () => driver.send(says("echo hello")),
            () => collect(driver.stream(says("echo hello"))),
            () => driver.get("some-task"),
          ];
          for (const ask of asked) expect(await ask().catch(driver.codeOf)).toBe("UNAUTHENTICATED");
        },
      );

      it("is shown a token when it asks for one, and the call is made again", async () => {
        const challenges: (string | undefined)[] = [];
        const credentials: CredentialProvider = {
          async headersFor(_url, refusal) {
            if (refusal !== undefined) challenges.push(refusal.challenge);
            const token = challenges.length === 0 ? "stale" : TOKEN;
            return { Authorization: `Bearer ${token}` };
          },
        };
        const agent = await connect(server.url, { binding, version, credentials, retry: ONCE });
        expect(await agent.send("echo hello")).toHaveProperty("task.status.state", "TASK_STATE_COMPLETED");
        expect(challenges).toEqual(['Bearer realm="interop"']);
      });

      it("refuses credentials that cannot be renewed", async () => {
        const credentials: CredentialProvider = { headersFor: async () => ({ Authorization: "Bearer stale" }) };
        const agent = await connect(server.url, { binding, version, credentials, retry: ONCE });
        const refused: unknown = await agent.send("echo hello").catch((error: unknown) => error);
        expect(ProtocolError.is(refused) && refused.code).toBe("UNAUTHENTICATED");
      });
    });

    it("is logged in to on the command line by what its card asks for", async () => {
      const state = mkdtempSync(join(tmpdir(), "interop-login-"));
      const environment = { XDG_STATE_HOME: state, HOME: state };
      const agent = ["-a", server.url, "--a2a-version", version];
      const send = (binding: string) => {
        const transport = { JSONRPC: "jsonrpc", "HTTP+JSON": "rest", GRPC: "grpc" }[binding] ?? binding;
        return runCli(["send", ...agent, "--transport", transport, "--text", "echo hello"], { environment });
      };
      try {
        expect((await send("JSONRPC")).code).toBe(4);
        const login = await runCli(["auth", "login", ...agent, "--secret-stdin"], { environment, stdin: TOKEN });
        expect([login.code, login.stdout]).toEqual([0, expect.not.stringContaining(`Bearer ${TOKEN}`)]);
        for (const binding of BINDINGS) {
          const { code, stdout } = await send(binding);
          expect([binding, code, stdout]).toEqual([binding, 0, expect.stringContaining("TASK_STATE_COMPLETED")]);
        }
      } finally {
        rmSync(state, { recursive: true, force: true });
      }
    });
  });
}
