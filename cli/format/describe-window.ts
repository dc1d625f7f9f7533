import { headText } from "#cli/format/describe-object.ts";
import { fieldsText, sectionText } from "#cli/format/describe-text.ts";
import { rowsText } from "#cli/format/values-text.ts";
import type { WindowObject } from "#shared/fleet/api/objects.ts";
import { selectionText } from "#shared/fleet/kinds/cluster-selection.ts";
import { groupsText } from "#shared/fleet/kinds/group-selection.ts";
import type { WindowSpec } from "#shared/fleet/kinds/window.ts";
import { isOpen, openings, type WindowTime } from "#shared/fleet/windows/calendar.ts";
import { openingText } from "#shared/fleet/windows/opening-text.ts";

const openingsShown = 5;

export function describeWindow(object: WindowObject, now: Date): string {
  const { spec, status } = object;
  const closing = status.nextClosing === undefined ? "" : `, until ${openingText(spec, new Date(status.nextClosing))}`;
  return [
    headText(object, now),
    fieldsText([
      ["Clusters", `${selectionText(spec.clusters ?? { all: true })} (${status.clusters ?? 0} registered)`],
      ["Groups", spec.groups && groupsText(spec.groups)],
      ["Open", status.open ? `yes${closing}` : "no"],
    ]),
    sectionText("Allow", rowsText(spec.allow.map((time) => [timeText(time)]))),
    sectionText("Deny", rowsText(spec.deny.map((time) => [timeText(time)]))),
    sectionText("Next openings", nextOpeningsText(spec, now)),
  ].join("");
}

/** One line for each of the next openings; or why there is none. */
export function nextOpeningsText(spec: WindowSpec, now: Date): string {
  const found = openings(spec, now, openingsShown).map((at) => [openingText(spec, at)]);
  return rowsText(found.length > 0 ? found : [[isOpen(spec, now) ? "stays open" : "never"]]);
}

function timeText({ cron, duration, timeZone, start, end }: WindowTime): string {
  return cron === undefined ? `${start} to ${end}` : `${cron} for ${duration} in ${timeZone}`;
}
