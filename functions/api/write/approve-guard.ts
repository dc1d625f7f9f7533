/** Approves a change that the guard of a SyncGroup withholds: exactly the one with the given hash. */

import { checkedPrunes } from "#functions/api/read/checked-prunes.ts";
import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { type ObjectReference, objectText } from "#functions/api/request/reference.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { operationsChange } from "#functions/api/write/object-change.ts";
import { sendAfter, writeObject } from "#functions/api/write/write-object.ts";
import { readRow } from "#shared/adapters/read-row.ts";
import { defined } from "#shared/base/defined.ts";
import { withApproval, withheldText } from "#shared/fleet/rollout/guard.ts";
import { keys, type Owner } from "#shared/fleet/rows/keys.ts";
import { nextAct } from "#shared/fleet/rows/object-rows.ts";
import type { WithheldChange } from "#shared/fleet/rows/rollout-rows.ts";
import { isNewer, newerRowText } from "#shared/fleet/rows/row.ts";

export interface GuardRequest {
  readonly owner: Owner & { readonly kind: "SyncGroup" };
  readonly hash: string;
  readonly caller: Caller;
}

/** @throws StarlingError `NotFound`, `Deleting`, `NewerRow`, and `GuardChanged` with what is withheld now. */
export async function approveGuard(
  ports: ApiPorts,
  { owner, hash, caller }: GuardRequest,
): Promise<{ readonly approved: WithheldChange }> {
  const reference: ObjectReference = owner;
  const object = objectText(reference);
  const rolloutState = await readRow(ports.table, keys.rolloutState(owner));
  if (rolloutState !== undefined && isNewer(rolloutState)) throw refusal("NewerRow", newerRowText(rolloutState));
  const isKnown = rolloutState?.guard?.withheld.some((one) => one.hash === hash) === true;
  const checked = isKnown ? [] : await checkedPrunes(ports.table, owner, rolloutState?.guard);
  let approved: WithheldChange | undefined;
  const change = await writeObject(ports, {
    reference,
    verb: "guard approve",
    caller,
    decide(row) {
      if (row === undefined) throw refusal("NotFound", `${object} does not exist`);
      if (row.operations.deletion !== undefined) throw refusal("Deleting", `${object} is being deleted`);
      const withheld = rolloutState?.uid === row.uid ? (rolloutState.guard?.withheld ?? []) : [];
      const ofTurns = withheld.find((one) => one.hash === hash);
      const ofChecks = checked.find((one) => one.hash === hash);
      approved = ofTurns ?? ofChecks;
      if (approved === undefined) throw otherChange(object, hash, [...withheld, ...checked]);
      const now = ports.clock.now();
      const act = { by: caller.principal, at: now.toISOString(), ...defined({ reason: caller.reason }) };
      const clusters = ofTurns === undefined ? ofChecks?.names : undefined;
      const approval = { ...act, number: nextAct(row.operations), hash, ...defined({ clusters }) };
      return operationsChange(row, withApproval(row.operations, approval), now);
    },
  });
  await sendAfter(ports, [change]);
  if (approved === undefined) throw new Error("an approval of nothing");
  return { approved };
}

function otherChange(object: string, hash: string, withheld: readonly WithheldChange[]) {
  const now = withheld.map((one) => `${withheldText(one)}: --hash ${one.hash}`).join("; ");
  const what = withheld.length === 0 ? "nothing" : now;
  return refusal("GuardChanged", `the guard of ${object} withholds no change ${hash}; it withholds ${what}`, {
    withheld,
  });
}
