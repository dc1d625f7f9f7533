/** Every row of the table: what its key says decides what it is. */

import type { CheckRow, ZoneCheckRow } from "#shared/fleet/rows/check-row.ts";
import type { CordonsRow } from "#shared/fleet/rows/cordons-row.ts";
import type { DeliveriesRow } from "#shared/fleet/rows/deliveries-row.ts";
import type { DiscoveryRow, FoundRow } from "#shared/fleet/rows/discovery-rows.ts";
import type { EventRow } from "#shared/fleet/rows/event-row.ts";
import type { FolderUseRow } from "#shared/fleet/rows/folder-use.ts";
import type { FreezesRow } from "#shared/fleet/rows/freezes-row.ts";
import type { HostLimitRow } from "#shared/fleet/rows/host-limit-row.ts";
import type { LeaseRow } from "#shared/fleet/rows/lease-row.ts";
import type {
  ClusterRow,
  ClusterValuesRow,
  DirectoryRow,
  FleetRow,
  FleetVersionRow,
  ReceiverRow,
  SourceRow,
  SyncGroupRow,
  UserSyncRow,
  WindowRow,
} from "#shared/fleet/rows/object-rows.ts";
import type { PinRow } from "#shared/fleet/rows/pin-row.ts";
import type { RevisionRow } from "#shared/fleet/rows/revision-row.ts";
import type {
  AlarmsRow,
  CatchUpRow,
  RenderingRow,
  RolloutRow,
  RolloutStateRow,
  SlotRow,
  StageRunRow,
  TargetRow,
} from "#shared/fleet/rows/rollout-rows.ts";
import type { NewerRow, Row } from "#shared/fleet/rows/row.ts";
import type { SyncRow } from "#shared/fleet/rows/sync-row.ts";
import type { TickRow } from "#shared/fleet/rows/tick-row.ts";
import type { WindowsRow } from "#shared/fleet/rows/windows-row.ts";
import type { ZoneRow } from "#shared/fleet/rows/zone-row.ts";

export type StoredRow =
  | SourceRow
  | ReceiverRow
  | DeliveriesRow
  | SyncGroupRow
  | UserSyncRow
  | ClusterRow
  | ClusterValuesRow
  | WindowRow
  | WindowsRow
  | CordonsRow
  | SyncRow
  | LeaseRow
  | CheckRow
  | ZoneCheckRow
  | FreezesRow
  | FleetRow
  | DiscoveryRow
  | FoundRow
  | DirectoryRow
  | FleetVersionRow
  | TickRow
  | ZoneRow
  | HostLimitRow
  | RolloutStateRow
  | RolloutRow
  | StageRunRow
  | AlarmsRow
  | SlotRow
  | TargetRow
  | CatchUpRow
  | RenderingRow
  | FolderUseRow
  | RevisionRow
  | PinRow
  | EventRow;

export type RowType = StoredRow["type"];
export type RowOf<Type extends RowType> = Extract<StoredRow, { readonly type: Type }>;

/** Whether rows of a newer version are wanted, as `NewerRow`; without them such a row fails the whole reading. */
export type Newer = "kept" | undefined;

/** The result of reading a row of a type. */
export type RowRead<Type extends RowType, Kept extends Newer> = RowOf<Type> | (Kept extends "kept" ? NewerRow : never);

/** Narrows a row that is written; rows that are read need a check of their schema, too. */
export function isOfType<Type extends RowType>(row: Row, type: Type): row is RowOf<Type> {
  return row.type === type;
}
