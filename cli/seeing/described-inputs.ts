/** What each template of a subject is given on one cluster, and who said so: from rows alone, no artifact is read. */
import type { TemplateInputs } from "#cli/format/inputs-text.ts";
import { fleetOf, viewFleet } from "#cli/seeing/fleet-view.ts";
import type { Session } from "#cli/session/session.ts";
import { originsOf } from "#shared/fleet/forecast/origins.ts";
import { wantedClusters } from "#shared/fleet/forecast/wanted-clusters.ts";
import type { Subject } from "#shared/fleet/rows/keys.ts";

/** Of the group's templates in their order; none where the cluster is not selected. @throws CliFailure of `viewFleet`. */
export async function inputsOn(
  session: Session,
  subject: Subject,
  cluster: string,
): Promise<readonly TemplateInputs[]> {
  const nothing = { documents: [], folders: new Map(), revisions: new Map(), from: "installation", cluster } as const;
  const view = await viewFleet(session, subject, nothing);
  const [member] = view.clusters;
  const [wanted] = wantedClusters(view.wanted, view.plan, fleetOf(view));
  if (member === undefined || wanted === undefined) return [];
  const assigned = new Map(member.syncs.map(({ name, input }) => [name, input]));
  return wanted.targets.map(({ template, sync, input }): TemplateInputs => {
    const origins = originsOf(template, { cluster: member, layers: view.layers });
    const told = { template: template.name, origins };
    if ("problem" in input) return { ...told, state: "problem", problem: input.problem };
    if ("disabled" in input) return { ...told, state: "disabled" };
    return { ...told, state: assigned.get(sync) === input.digest ? "assigned" : "wanted" };
  });
}
