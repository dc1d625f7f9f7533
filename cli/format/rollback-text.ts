/** The effects of a rollback on objects, as `starling rollout rollback` prints it. */
import { counted } from "#shared/base/counted.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { EffectKind, ObjectEffects } from "#shared/fleet/forecast/rollback-effects.ts";

const words: Readonly<Record<EffectKind, string>> = {
  unchangeable: "cannot change back",
  versionLost: "would lose a version",
  deleted: "deleted",
  ran: "not undone",
  runsAgain: "runs again",
  createdAgain: "created again",
  kept: "stays",
};

/** One line for each effect, the worst first. */
export function effectsText({ effects, more, notCompared }: ObjectEffects): string {
  const lines = effects.map(({ how, object, sync, clusters, why }) => {
    const reason = why === undefined ? "" : `: ${why}`;
    return `${words[how]}: ${object} of ${sync} on ${counted(clusters, "cluster")}${reason}`;
  });
  const rest = more === 0 ? [] : [`and ${more} more such lines`];
  const unknown = notCompared.map(({ clusters, why }) => `not compared: ${counted(clusters, "cluster")}: ${why}`);
  const all = [...lines, ...rest, ...unknown];
  if (all.length === 0) return "  no object is deleted, created or run again\n";
  return all.map((line) => `  ${plainLine(line)}\n`).join("");
}
