import { expect, test } from "vitest";
import { ServedFolder } from "./served-folder.ts";

const FILES = { "dragoman.yaml": "store: sqlite:data.db\nagents:\n  echo: { use: echo }\n" };

test("a server that stored large messages ends as any other, with nothing lost", async () => {
  const served = new ServedFolder(FILES);
  for (let life = 0; life < 4; life++) {
    await served.start();
    const { id } = await served.send("echo", "x".repeat(400_000));
    served.kill("SIGTERM");
    expect(await served.ended()).toEqual({ code: 0, signal: null });
    await served.start();
    expect(await served.post("echo", "GetTask", { id })).toMatchObject({
      result: { status: { state: "TASK_STATE_COMPLETED" } },
    });
    served.kill("SIGTERM");
    await served.ended();
  }
});
