/** What is wrong with something that was read; the message names the member. */
export class Misread extends Error {
  override readonly name = "Misread";
}
