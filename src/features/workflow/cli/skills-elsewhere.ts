/** Skills of a workflow that agents of other servers have: `dragoman run` has no registry of its own. */

import { resolveSetting, SETTINGS } from "../../../core/cli/settings/definitions.ts";
import { findSettingFiles } from "../../../core/cli/settings/files.ts";
import { ConnectionError, redactUrl } from "../../../core/client/errors.ts";
import type { FindAgents } from "../../../core/server/agent-chooser.ts";
import { findRegistry, toRegistryFailure } from "../../registry/cli/session.ts";
import { createRegistryClient } from "../../registry/client/registry-client.ts";
import { RegistryError } from "../../registry/client/types.ts";
import { toFoundAgent } from "../../registry/server/find-agents.ts";

export interface SkillsElsewhere {
  readonly registry: string;
  /** The agent that would be called, by skill; without those that no agent has. */
  readonly agents: ReadonlyMap<string, string>;
  readonly find: FindAgents;
}

/** `--registry`, or what stands for it in the environment or a settings file. */
export function readRegistryFlag(flag: string | undefined): string | undefined {
  const value = resolveSetting(
    "registry",
    flag === undefined ? {} : { registry: flag },
    process.env,
    findSettingFiles(),
  );
  return typeof value?.value === "string" ? SETTINGS.registry.read("--registry", value.value) : undefined;
}

const RETRY = { attempts: 2, baseMs: 200, capMs: 1_000 };

export async function lookUpSkills(skills: readonly string[], given: string | undefined): Promise<SkillsElsewhere> {
  const agents = new Map<string, string>();
  const find = createFind(given);
  if (skills.length === 0) return { registry: given ?? "", agents, find };
  const { isGiven, url } = await findRegistry(given);
  const registry = createRegistryClient(url, { retry: RETRY });
  for (const skill of skills) {
    try {
      const [best] = await registry.find({ skill });
      if (best !== undefined) agents.set(skill, best.url === undefined ? best.displayName : redactUrl(best.url));
    } catch (error) {
      if (isGiven) throw toRegistryFailure(error);
      if (!isFailure(error)) throw error;
      if (error instanceof RegistryError && error.code === "UNAVAILABLE") continue;
      // No registry answers, so that the configuration is all there is.
      break;
    }
  }
  return { registry: url, agents, find };
}

function createFind(given: string | undefined): FindAgents {
  return async function* find(wanted) {
    const { url } = await findRegistry(given);
    try {
      const found = await createRegistryClient(url, { retry: RETRY }).find(wanted);
      yield { agents: found.flatMap(toFoundAgent), unanswered: [] };
    } catch (error) {
      if (!isFailure(error)) throw error;
      yield { agents: [], unanswered: [`${redactUrl(url)}: ${error.message}`] };
    }
  };
}

function isFailure(error: unknown): error is RegistryError | ConnectionError {
  return error instanceof RegistryError || ConnectionError.is(error);
}
