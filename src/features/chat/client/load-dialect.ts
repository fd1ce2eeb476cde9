/** Calling in chat rooms, with all its networks: loaded only if it is used. */
export async function loadChatDialect() {
  const [binding, calls, { PARTICIPANT_CAN: can }, { DIALECT_NAME: name }, cards, { NETWORKS: networks }] =
    await Promise.all([
      import("../runtime/bind-channel.ts"),
      import("../runtime/call/calls.ts"),
      import("../a2a-lite/can.ts"),
      import("../a2a-lite/index.ts"),
      import("../a2a-lite/read-card.ts"),
      import("../networks/networks.ts"),
    ]);
  const { BINDING, VERSION } = cards;
  return { ...binding, ...calls, can, name, networks, BINDING, VERSION };
}
