import { defineAgent } from "dragoman";

export default defineAgent({
  name: "Greeter",
  description: "A name in, a greeting out.",
  skills: [{ id: "greet", name: "Greet", description: "Greets whoever is named.", tags: ["example"] }],
  onCrash: "resume", // greeting twice is harmless
  async *run(turn) {
    yield turn.working("Thinking of something nice to say");
    if (!turn.text) {
      yield turn.inputRequired("Who are you?");
      return;
    }
    yield* turn.stream("greeting", greetingFor(turn.text));
  },
});

function greetingFor(name: string): string[] {
  return ["Hello, ", name, "! ", "Good to see you."];
}
