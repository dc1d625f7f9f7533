import type { Document } from "#shared/fleet/kinds/document.ts";
import { countsOnce } from "#shared/fleet/rollout/approval.ts";

/**
 * Principals that can never be as many approvers as the gate asks for. It is a warning, because the setting
 * `personalRoles` can change.
 */
export function approverWarnings(
  documents: readonly Document[],
  personalRoles: readonly string[] | undefined,
): readonly (readonly string[])[] {
  return documents.map((document) =>
    document.kind !== "SyncGroup"
      ? []
      : document.spec.rollout.stages.flatMap(({ name, before = [] }) =>
          before.flatMap(({ approval: { by, count } }) => {
            const names = [...new Set(by)];
            if (names.length >= count || !names.every((pattern) => countsOnce(pattern, personalRoles))) return [];
            return [
              `stage ${name} asks for ${count} approvals, and ${names.join(" and ")} may give ${names.length} in an account: ` +
                "a role is one approver, whoever assumes it; name more of them in by, or add the role to the setting personalRoles",
            ];
          }),
        ),
  );
}
