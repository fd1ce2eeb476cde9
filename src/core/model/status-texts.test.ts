import { expect, it } from "vitest";
import { parseStatusText, STATUS_TEXTS, type StatusTextName, statusText } from "./status-texts.ts";

it.each(Object.keys(STATUS_TEXTS) as StatusTextName[])("%s is recognised with its value", (name) => {
  const hasValue = STATUS_TEXTS[name].includes("{}");
  for (const value of hasValue ? ["1", "0.5", "16777216", "SIGKILL"] : [""]) {
    expect(parseStatusText(statusText(name, value))).toEqual({ name, value });
  }
});

it.each(["", "No.", "The agent is busy", "The agent is busy. Or not.", "The agent did not finish within a day s."])(
  "%j is an agent's own",
  (text) => expect(parseStatusText(text)).toBeUndefined(),
);
