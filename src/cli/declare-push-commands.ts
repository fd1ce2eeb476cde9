import { type Command, Option } from "commander";
import type { PushDeliveriesFlags, PushRedeliverFlags } from "./commands/push-deliveries.ts";
import type { PushInboxFlags } from "./commands/push-inbox.ts";
import { addExamples } from "./examples.ts";
import type { Output } from "./output.ts";

type AddStoreOptions = (command: Command) => Command;

export function declarePush(push: Command, output: Output, addStoreOptions: AddStoreOptions): void {
  declareInbox(push.command("inbox"), output);
  declareDeliveries(addStoreOptions(push.command("deliveries")), output);
  declareRedeliver(addStoreOptions(push.command("redeliver [task]")), output);
}

function declareInbox(inbox: Command, output: Output): void {
  inbox
    .description("receive push notifications, check and print them; a shared secret is taken from DRAGOMAN_PUSH_SECRET")
    .option("-p, --port <port>", "port to listen on, 0 for a free one", "4100")
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--token <token>", "refuse notifications without this token")
    .option("--jwks <url>", "refuse notifications without a token signed by one of these keys")
    .option("--issuer <issuer>", "who must have signed it")
    .option("--public-url <url>", "how senders reach this receiver, if not by host and port")
    .option("--fail <percent>", "answer so many with 503, to see them repeated")
    .option("--count <number>", "end after so many notifications")
    .addOption(new Option("-o, --output <format>", "text or json").choices(["text", "json"]).default("text"))
    .action(async (flags: PushInboxFlags) => {
      const { pushInbox } = await import("./commands/push-inbox.ts");
      await pushInbox(output, flags);
    });
  addExamples(inbox, [
    ["dragoman push inbox --token sesame", "a webhook for this machine, at http://127.0.0.1:4100"],
    ["dragoman push inbox --fail 30 -o json", "one that fails now and then, for scripts"],
    ["dragoman push inbox --jwks http://127.0.0.1:4000/.well-known/jwks.json", "with what the server publishes"],
  ]);
}

function declareDeliveries(deliveries: Command, output: Output): void {
  deliveries
    .description("list push notifications that wait or were given up; also while the server runs")
    .option("--dead", "only those that were given up")
    .option("--task <id>", "only those of this task")
    .action(async (flags: PushDeliveriesFlags) => {
      const { pushDeliveries } = await import("./commands/push-deliveries.ts");
      await pushDeliveries(output, flags);
    });
  addExamples(deliveries, [["dragoman push deliveries --dead", "what was given up, in the store of ./dragoman.yaml"]]);
}

function declareRedeliver(redeliver: Command, output: Output): void {
  redeliver
    .description("deliver again what was given up or keeps failing; also while the server runs")
    .option("--all", "whatever was given up, of all tasks")
    .option("--id <config>", "only this push config of the task")
    .option("--from <number>", "from this event on, also what was delivered before")
    .action(async (task: string | undefined, flags: PushRedeliverFlags) => {
      const { pushRedeliver } = await import("./commands/push-deliveries.ts");
      await pushRedeliver(output, task, flags);
    });
  addExamples(redeliver, [
    ["dragoman push redeliver --all", "when the receivers are back"],
    ["dragoman push redeliver 0190c2de-0000-7000-8000-000000000000 --from 1", "one task, from its beginning"],
  ]);
}
