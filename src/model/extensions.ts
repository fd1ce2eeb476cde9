/** Extensions of A2A 1.0 that this product defines. */
export const EXTENSIONS = {
  /** Resuming a stream leaves out the snapshot frame. */
  replay: "urn:dragoman:ext:replay:v1",
  /** `messageId` is the key under which a repeated send is recognised. */
  idempotency: "urn:dragoman:ext:idempotency:v1",
  /** How many agents a request came through, and which, in its `metadata`. */
  hops: "urn:dragoman:ext:hops:v1",
  /** Reasoning text of an agent, in the `metadata` of a part: the text itself, or `true` where it is the part's own. */
  reasoning: "urn:dragoman:ext:reasoning:v1",
  /** What only Xiaoyi shows (cards, commands, chips, references), in the `metadata` of a part whose text others show. */
  xiaoyi: "urn:dragoman:ext:xiaoyi:v1",
} as const;
