/** The three writers one after the other, as a script with curl calls them: what one answers as text goes to the next. */
import { expect, test } from "vitest";
import { BUILTIN_AGENTS } from "../support/builtin-agents.ts";
import { startServer } from "../support/lifecycle.ts";
import { sendRaw } from "../support/raw-http.ts";

const { outline, document, summary } = BUILTIN_AGENTS;
const agents = { outline: outline(), document: document(), summary: summary() };
const server = await startServer({ agents, grpcPort: false });

interface RestTask {
  readonly artifacts: readonly { readonly parts: readonly { readonly type: string; readonly text?: string }[] }[];
}

async function ask(agent: string, text: string): Promise<string> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ message: { role: "user", parts: [{ type: "text", text }] } });
  const { artifacts }: RestTask = (await sendRaw(`${server.url}/agents/${agent}/tasks/send`, { headers, body })).json;
  return artifacts.flatMap(({ parts }) => parts.flatMap((part) => part.text ?? [])).join("\n");
}

test.each([
  ["The history of tea", /^> This is a skeleton for “The history of tea”/m, ["Origins", "Spread", "Turning points"]],
  ["茶的历史", /^> 这是《茶的历史》的写作骨架/m, ["起源", "传播", "转折"]],
])("%s: outline, document and summary, each from the text before", async (topic, note, sections) => {
  const plan = await ask("outline", topic);
  expect(plan).toMatch(note);
  const headings = [...plan.matchAll(/^## (.+)$/gm)].map(([, title]) => title ?? "");
  expect(headings.filter((title) => sections.includes(title))).toEqual(sections);

  const article = await ask("document", plan);
  expect(article).toMatch(note);
  expect(article).not.toMatch(/^- /m);
  for (const title of headings) expect(article).toContain(`## ${title}\n\n`);

  const short = await ask("summary", article);
  expect(`> ${short}`).toMatch(note);
  expect(short).not.toMatch(/plan has|计划分为/);
  expect(`> ${await ask("summary", plan)}`).toMatch(note);
  expect(await ask("document", article)).toMatch(note);
  expect(await ask("outline", article)).toMatch(note);
});

test("an outline of sentences becomes prose, and not the outline again", async () => {
  const article = await ask(
    "document",
    "# Tea\n\n## Origins\n\n- Tea was first drunk in China.\n- It was a medicine.\n\n## Spread\n\n- Monks took it to Japan.\n",
  );
  expect(article).toBe(
    "# Tea\n\n## Origins\n\nTea was first drunk in China. It was a medicine.\n\n## Spread\n\nMonks took it to Japan.\n",
  );
});

test.each([
  ["with the line ends of Windows", (outline: string) => outline.replaceAll("\n", "\r\n")],
  ["below a line that asks for a document", (outline: string) => `Write an article from this outline:\n\n${outline}`],
])("an outline %s is an outline", async (_how, change) => {
  const plan = await ask("outline", "The history of tea");
  expect(await ask("document", change(plan))).toBe(await ask("document", plan));
});

test("numbers of two levels are sections and points", async () => {
  const article = await ask(
    "document",
    "1. Origins\n1.1 China drank it first.\n1.2 Monks carried it.\n2. Today\n2.1 All drink it.\n",
  );
  expect(article).toContain("## Origins\n\nChina drank it first. Monks carried it.\n\n## Today\n\nAll drink it.\n");
});

test.each(["历史", "history", "History of the"])("%s alone is a topic like others", async (topic) => {
  expect(await ask("outline", topic)).not.toMatch(/Before the\b|历出现/);
});
