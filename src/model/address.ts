const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const GROUPS = 8;

/**
 * Who is meant by an address where addresses are counted. A network of IPv6 is one: whoever has one address there has
 * 2⁶⁴ of them (RFC 6177).
 */
export function networkOf(address: string): string {
  if (!address.includes(":")) return address;
  const mapped = MAPPED.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [plain = ""] = address.split("%", 1);
  const [before = "", after] = plain.split("::", 2);
  const head = groupsOf(before);
  const tail = groupsOf(after ?? "");
  const gap = Math.max(0, GROUPS - head.length - tail.length);
  const groups = [...head, ...new Array<string>(gap).fill("0"), ...tail].slice(0, GROUPS / 2);
  return `${groups.map((group) => group.replace(/^0+(?=.)/, "").toLowerCase()).join(":")}::/64`;
}

function groupsOf(text: string): readonly string[] {
  return text === "" ? [] : text.split(":");
}
