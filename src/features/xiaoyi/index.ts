/** For agents with Xiaoyi users: cards, commands, chips, references and reasoning as parts of an answer. */
export {
  type ActionOptions,
  type Card,
  type Chip,
  type CommandOptions,
  type DeeplinkOptions,
  type Reference,
  type Shown,
  xiaoyi,
} from "./codec/builders.ts";
