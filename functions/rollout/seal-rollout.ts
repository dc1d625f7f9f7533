import { readMembers, type StoredMember } from "#functions/rollout/fleet.ts";
import type { PlannerPorts, Step } from "#functions/rollout/planner-ports.ts";
import type { Known } from "#functions/rollout/read-subject.ts";
import { subjectWrite } from "#functions/rollout/subject-write.ts";
import { inputDigest } from "#shared/fleet/rollout/plan.ts";
import { keys, type Subject } from "#shared/fleet/rows/keys.ts";
import type { Plan, RolloutRow, TargetInput, TargetRow } from "#shared/fleet/rows/rollout-rows.ts";
import { rowSchema } from "#shared/fleet/rows/row.ts";

/** Targets written in one transaction, which holds 100 actions. */
const pageSize = 90;

/** Writes the next targets of a rollout that is Planning, and seals it with the last. Nothing is assigned before. */
export async function sealRollout(known: Known, rollout: RolloutRow, ports: PlannerPorts): Promise<Step> {
  const members = await readMembers(ports.blobs, rollout.members);
  const targets = targetPage(rollout, members, rollout.planned);
  const planned = rollout.planned + targets.length;
  const phase = planned === rollout.size ? "Sealed" : "Planning";
  const next: RolloutRow = { ...rollout, version: rollout.version + 1, planned, phase };
  await ports.table.write([
    { put: next, when: { version: rollout.version } },
    ...targets.map((target) => ({ put: target })),
    subjectWrite(known.row, { rollout: next, now: ports.clock.now() }),
  ]);
  return { messages: [], again: true };
}

/** The next page of a rollout's targets. Written again after a crash, they are the same rows. */
export function targetPage(
  rollout: { readonly subject: Subject; readonly number: number; readonly plan: Plan },
  members: readonly StoredMember[],
  from: number,
): TargetRow[] {
  return members.slice(from, from + pageSize).map((member, index) => {
    const order = from + index;
    return {
      ...keys.target(rollout.subject, rollout.number, { order, cluster: member.cluster }),
      type: "Target",
      schema: rowSchema,
      version: 1,
      order,
      cluster: member.cluster,
      stage: member.stage,
      state: "Waiting",
      reason: "",
      inputs: member.inputs.map(targetInput),
      attempts: {},
      ...(member.leaving === true ? { leaving: true as const } : {}),
    };
  });
}

function targetInput(input: StoredMember["inputs"][number]): TargetInput {
  return "problem" in input ? input : { digest: inputDigest(input), path: input.path };
}
