import type { Client, Element } from "@xmpp/client";

const NS_STREAM_MANAGEMENT = "urn:xmpp:sm:3";

/** Turns off what a channel does itself, and corrects what the library does wrong. */
export function adaptClient(client: Client): void {
  client.reconnect.stop();
  // Without a listener they would end the process; what matters is that the connection ends.
  client.on("error", () => {});
  decodeInPieces(client);
  client.prependListener("element", (element) => {
    if (element.is("features")) removeStreamManagement(element);
  });
}

/** The library decodes each chunk of the connection on its own, which breaks characters at their edges. */
function decodeInPieces(client: Client): void {
  const decoder = new TextDecoder();
  const onData = client._onData.bind(client);
  client._onData = (data) => onData(typeof data === "string" ? data : decoder.decode(data, { stream: true }));
}

/**
 * Each connection is a new session and the room confirms what it took, so that nothing would be resumed. The library
 * counts stanzas that it sends while stream management is being enabled, which the server does not: Prosody closes.
 */
function removeStreamManagement(features: Element): void {
  features.remove("sm", NS_STREAM_MANAGEMENT);
  // Offered inside of SASL 2 and Bind 2 as well (XEP-0388, XEP-0386).
  for (const child of features.getChildElements()) {
    if (child.attrs.var === NS_STREAM_MANAGEMENT) features.remove(child);
    else removeStreamManagement(child);
  }
}
