import { excerpt } from "#shared/base/excerpt.ts";
import { expiryOf } from "#shared/fleet/rows/expiry.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { type Row, rowSchema } from "#shared/fleet/rows/row.ts";

/** The last delivery of a sender that a Receiver believed. */
export interface LastDelivery {
  readonly at: string;
  /** Absent for senders whose events have no names. */
  readonly event?: string;
  /** Number of Sources that were polled. */
  readonly polled: number;
}

/** The last request that a Receiver refused. Anybody can send one, so that it proves nothing. */
export interface LastRefusal {
  readonly at: string;
  /** The status of the answer. */
  readonly status: number;
  readonly reason: string;
  /** One of those that the kind of sender has. */
  readonly event?: string;
}

export interface LastDeliveries {
  readonly accepted?: LastDelivery;
  readonly refused?: LastRefusal;
}

/** The last deliveries to the URL of a Receiver. `webhook` alone writes them. */
export interface DeliveriesRow extends Row, LastDeliveries {
  readonly type: "Deliveries";
}

const maxReason = 300;

/** The row after a delivery. It ends with the last of them, because the URL of a deleted Receiver gets no other. */
export function deliveriesRow(id: string, before: DeliveriesRow | undefined, delivered: LastDeliveries): DeliveriesRow {
  const { accepted = before?.accepted, refused = before?.refused } = delivered;
  const at = [accepted?.at ?? "", refused?.at ?? ""].sort().at(-1) ?? "";
  return {
    ...keys.deliveries(id),
    type: "Deliveries",
    schema: rowSchema,
    version: (before?.version ?? 0) + 1,
    ...(accepted === undefined ? {} : { accepted }),
    ...(refused === undefined ? {} : { refused: { ...refused, reason: excerpt(refused.reason, maxReason) } }),
    expiresAt: expiryOf(new Date(at)),
  };
}
