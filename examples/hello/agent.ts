import { defineAgent } from "dragoman";

export default defineAgent({
  name: "Greeter",
  description: "A name in, a greeting out.",
  skills: [{ id: "greet", name: "Greet", description: "Greets whoever is named.", tags: ["example"] }],
  onCrash: "resume", // greeting twice does no harm
  async *run(turn) {
    yield turn.working("Thinking of something nice to say");
    if (!turn.text) {
      yield turn.inputRequired("Who are you?");
      return;
    }
    yield* turn.stream("greeting", wordsFor(turn.text));
  },
});

function wordsFor(name: string): string[] {
  return ["Hello, ", name, "! ", "Good to see you."];
}
