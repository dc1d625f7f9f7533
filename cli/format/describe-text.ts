/** Pieces of `describe` pages. */

import { formatTable } from "#cli/format/table.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { EventItem } from "#shared/fleet/api/objects.ts";
import type { Condition } from "#shared/fleet/rows/object-rows.ts";
import { formatAge, formatTime } from "#shared/words/age.ts";

/** `Name:        value`, one line each; lines without a value are left out. */
export function fieldsText(fields: readonly (readonly [string, string | undefined])[]): string {
  let text = "";
  for (const [label, value] of fields) {
    if (value !== undefined && value !== "") text += `${`${label}:`.padEnd(13)}${plainLine(value)}\n`;
  }
  return text;
}

export function sectionText(title: string, body: string): string {
  return body === "" ? "" : `\n${title}:\n${body}`;
}

/** Conditions of an unreadable row have no `since`. */
export function conditionsText(
  conditions: readonly (Omit<Condition, "since"> & { readonly since?: string })[],
  now: Date,
): string {
  const rows = conditions.map((condition) => [
    condition.type,
    condition.status,
    condition.reason,
    condition.since === undefined
      ? ""
      : `since ${formatTime(condition.since, now)} (${formatAge(condition.since, now)})`,
    condition.message,
  ]);
  return formatTable({ columns: ["", "", "", "", ""], rows }, { headers: "hide", indent: "  " });
}

export function eventsText(events: readonly EventItem[], now: Date): string {
  const rows = events.map((event) => [formatTime(event.at, now), event.reason, event.cluster ?? "", event.message]);
  return formatTable({ columns: ["", "", "", ""], rows }, { headers: "hide", indent: "  " });
}

/** The commands to type next. */
export function nextText(commands: readonly string[]): string {
  if (commands.length === 0) return "";
  return `\n${commands.map((command, index) => `${index === 0 ? "Next:" : ""}`.padEnd(13) + plainLine(command)).join("\n")}\n`;
}
