/** The events of a Source for programs outside: pure functions of the status before and after a write. */

import { digestOf, hexOf } from "#shared/base/digest.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { SourceAvailabilityDetail, SourceRevisionDetail } from "#shared/fleet/api/event-details.ts";
import type { BusEvent } from "#shared/fleet/outside-event.ts";
import { watchdogAt } from "#shared/fleet/rows/due.ts";
import type {
  Artifact,
  NamedArtifact,
  SourceAvailability,
  SourceEvents,
  SourceHappening,
  SourceRow,
  SourceStatus,
} from "#shared/fleet/rows/object-rows.ts";
import { announcementOf } from "#shared/fleet/sources/source-status.ts";

/** Events that wait at most: a bus may refuse all of them for days. */
const mostPending = 20;
const maxMessage = 300;

/** The `detail-type` of each. */
const eventTypes = {
  revision: "Source Revision Changed",
  availability: "Source Availability Changed",
} as const satisfies Readonly<Record<SourceHappening["type"], string>>;

/** The status with the events of what it changes. They are written together, so that none is lost with the function. */
export function withEvents(before: SourceStatus, after: SourceStatus, now: Date): SourceStatus {
  const { events = { last: 0 } } = before;
  const { last, pending = [], tries = 0 } = events;
  const happened = changesOf(before, after, now.toISOString()).map(
    (change, index): SourceHappening => ({ sequence: last + index + 1, ...change }),
  );
  const all = [...pending, ...happened];
  if (all.length === 0) return after;
  const failed = pending.length === 0 ? 0 : tries + 1;
  const next: SourceEvents = {
    last: last + happened.length,
    pending: all.slice(-mostPending),
    ...(failed === 0 ? {} : { tries: failed }),
    againAt: watchdogAt(now, failed),
  };
  return { ...after, events: next };
}

/** How many of the oldest events gave way to newer ones, because the bus took none for long. */
export function droppedEvents(before: SourceStatus, after: SourceStatus): number {
  const [was, is] = [before.events, after.events];
  return (was?.pending?.length ?? 0) + (is?.last ?? 0) - (was?.last ?? 0) - (is?.pending?.length ?? 0);
}

/** The status after its events were sent, or when nobody is to get them. */
export function withoutPending(status: SourceStatus): SourceStatus {
  const { events, ...rest } = status;
  return events === undefined ? status : { ...rest, events: { last: events.last } };
}

/** The pending events as they are sent: with an id that is the same every time. */
export function pendingEvents(
  { namespace, name, uid, status }: Pick<SourceRow, "namespace" | "name" | "uid" | "status">,
  installation: string,
): readonly BusEvent[] {
  const source = { installation, namespace, name, uid };
  return (status.events?.pending ?? []).map((happened) => {
    const id = hexOf(digestOf({ ...source, ...happened })).slice(0, 32);
    const { type, sequence, time, ...data } = happened;
    const detail = { id, sequence, time, ...source, ...data };
    return { type: eventTypes[type], time, detail: detail satisfies SourceRevisionDetail | SourceAvailabilityDetail };
  });
}

type Change = SourceHappening extends infer One ? (One extends unknown ? Omit<One, "sequence"> : never) : never;

function changesOf(before: SourceStatus, after: SourceStatus, time: string): readonly Change[] {
  return [...revisionChange(before, after, time), ...availabilityChange(before, after, time)];
}

function revisionChange({ artifact: was }: SourceStatus, { artifact }: SourceStatus, time: string): readonly Change[] {
  if (artifact === undefined) return [];
  if (was !== undefined && announcementOf(was) === announcementOf(artifact)) return [];
  const { origin } = artifact;
  return [
    {
      type: "revision",
      time,
      ...named(artifact),
      ...(origin === undefined ? {} : { origin: withoutQueries(origin) }),
      ...(was === undefined ? {} : { previous: named(was) }),
    },
  ];
}

function availabilityChange(before: SourceStatus, after: SourceStatus, time: string): readonly Change[] {
  const [was, is] = [availabilityOf(before), availabilityOf(after)];
  if (is === undefined || was?.availability === is.availability) return [];
  const { artifact, staleSince } = after;
  const message = excerpt(withoutQueries(readyOf(after)?.message ?? ""), maxMessage);
  return [
    {
      type: "availability",
      time,
      ...is,
      message,
      ...(artifact === undefined ? {} : { artifact: named(artifact) }),
      ...(staleSince === undefined ? {} : { staleSince }),
      ...(was === undefined ? {} : { previous: was }),
    },
  ];
}

function availabilityOf(status: SourceStatus): SourceAvailability | undefined {
  const ready = readyOf(status);
  if (ready === undefined) return undefined;
  const { reason, since } = ready;
  return { availability: ready.status === "True" ? "available" : "unavailable", reason, since };
}

function readyOf({ conditions }: SourceStatus) {
  return conditions.find(({ type }) => type === "Ready");
}

/** The query of an archive's URL can be what lets somebody read it, and a bus has other readers than the Source. */
function withoutQueries(text: string): string {
  return text.replaceAll(/\b(https?:\/\/[^\s?"'<>]+)\?[^\s"'<>,;]*/gi, "$1");
}

function named({ revision, digest }: Artifact): NamedArtifact {
  return { revision, digest };
}
