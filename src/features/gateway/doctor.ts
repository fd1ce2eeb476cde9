/** Examines the agents of other servers that a configuration names. */

import type { ProbeTarget } from "../../core/cli/doctor/probe/agent.ts";
import { probeOf } from "../../core/cli/doctor/probe/index.ts";
import { CONFIGURATION, grpcAuthority } from "../../core/cli/doctor/probe/targets.ts";
import type { DoctorParts } from "../../core/extension/contract.ts";
import { mayCallGrpc, openRemote, type RemoteAddress } from "../../core/server/outbound.ts";

export const doctorParts: DoctorParts = {
  probes: (name, { kind, source }, options) =>
    kind === "remote" && source.kind === "url" ? [probeOf(upstreamTarget(name, source), options)] : [],
};

function upstreamTarget(name: string, source: RemoteAddress): ProbeTarget {
  const { connect, hosts, readCard } = openRemote(source);
  const { binding: _, credentials, credentialOrigins, keys, ...rest } = connect;
  return {
    agent: name,
    part: "upstream",
    source: CONFIGURATION,
    card: source.url,
    connect: rest,
    mayCall: (entry, cardUrl) => {
      const authority = grpcAuthority(entry, cardUrl);
      return authority === undefined || mayCallGrpc(authority, hosts);
    },
    async login(_url, card) {
      if (card !== undefined) readCard?.(card);
      if ((credentials ?? keys) === undefined) return undefined;
      return { ...(credentials && { credentials }), ...(keys && { keys }), credentialOrigins: credentialOrigins ?? [] };
    },
  };
}
