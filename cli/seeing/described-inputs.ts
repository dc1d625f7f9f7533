/** The inputs of each template on one cluster, and where they are set. They come from rows alone; no artifact is read. */
import type { TemplateInputs } from "#cli/format/inputs-text.ts";
import { fleetOf, viewFleet } from "#cli/seeing/fleet-view.ts";
import type { Session } from "#cli/session/session.ts";
import { desiredClusters } from "#shared/fleet/forecast/desired-clusters.ts";
import { originsOf } from "#shared/fleet/forecast/origins.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";

/** The inputs of the templates in their order; none if the cluster is not selected. @throws CliFailure of `viewFleet`. */
export async function inputsOn(session: Session, owner: Owner, cluster: string): Promise<readonly TemplateInputs[]> {
  const nothing = { documents: [], folders: new Map(), revisions: new Map(), from: "installation", cluster } as const;
  const view = await viewFleet(session, owner, nothing);
  const [member] = view.clusters;
  const [desired] = desiredClusters(view.desired, view.plan, fleetOf(view));
  if (member === undefined || desired === undefined) return [];
  const assigned = new Map(member.syncs.map(({ name, input }) => [name, input]));
  return desired.targets.map(({ template, sync, input }): TemplateInputs => {
    const origins = originsOf(template, { cluster: member, layers: view.layers });
    const reported = { template: template.name, origins };
    if ("problem" in input) return { ...reported, state: "problem", problem: input.problem };
    if ("disabled" in input) return { ...reported, state: "disabled" };
    return { ...reported, state: assigned.get(sync) === input.digest ? "assigned" : "desired" };
  });
}
