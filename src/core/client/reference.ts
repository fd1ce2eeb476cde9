/** What a registry can be asked for in place of an address. */
export type RegistryReference = { readonly skill: string } | { readonly registered: string };

export function formatReference(reference: RegistryReference): string {
  return "skill" in reference ? `skill:${reference.skill}` : reference.registered;
}

const SKILL = /^skill:(\S+)$/;
const URN = /^urn:\S+$/i;
/** Neither a host with a domain or port, nor a URL, nor a path. */
const NAME = /^[^\s.:/\\@?#~]+(?: [^\s.:/\\@?#~]+)*$/;

/**
 * `skill:<id>` asks for an agent that has the skill; `urn:…`, or a name of one or more words, for the agent of that id or
 * name. Undefined for what is an address. A single word can also be the name of a host or file.
 */
export function parseReference(text: string): RegistryReference | undefined {
  const skill = SKILL.exec(text)?.[1];
  if (skill !== undefined) return { skill };
  return (URN.test(text) || NAME.test(text)) && text.toLowerCase() !== "localhost" ? { registered: text } : undefined;
}
