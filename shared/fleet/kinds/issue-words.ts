/** Problems of a schema, with their fields and values, in the words of people. */
import type * as z from "zod";
import { excerpt, excerptOf, withoutLogins } from "#shared/base/excerpt.ts";
import { isHidden } from "#shared/base/hidden-value.ts";
import { schemaWords } from "#shared/fleet/kinds/schema-words.ts";

/** Longer than the key of a Kubernetes label may be. */
const shownOfKey = 320;

/**
 * The problems without those that a value of the wrong type has besides: a text is no list with too many items. A text or
 * a number has its first problem only: the remedy is another value.
 */
export function withoutFollowing(issues: readonly z.core.$ZodIssue[], root: unknown): readonly z.core.$ZodIssue[] {
  const wrong = new Set(issues.filter(({ code }) => code === "invalid_type").map(({ path }) => fieldText(path)));
  const reported = new Set<string>();
  return issues.filter(({ code, path }) => {
    const field = fieldText(path);
    const isFollowing = typeof valueAt(root, path) !== "object" && reported.has(field);
    reported.add(field);
    return !isFollowing && (code === "invalid_type" || !wrong.has(field));
  });
}

/** The problem of a value, the value, and the remedy. */
export function issueWords(issue: z.core.$ZodIssue, root: unknown): string {
  if (isHidden(issue)) return issue.message;
  const got = valueAt(root, issue.path);
  const desired = schemaWords(issue.message);
  if (got === undefined) return `is required: ${lowerFirst(desired)}`;
  const isQuoted = issue.code === "invalid_type" && issue.expected === "number" && /^"\d+"$/.test(excerptOf(got));
  const isLong = issue.code === "too_big" && Array.isArray(got);
  return `${desired}${isQuoted ? ": remove the quotes" : ""} (got ${isLong ? got.length : gotText(got)})`;
}

/** The value; of a map with several fields, or with lists or maps in it, only the names of its fields. */
function gotText(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return excerptOf(value);
  const members = Object.entries(value);
  const isShort = members.length < 2 && members.every(([, member]) => typeof member !== "object");
  if (isShort) return excerptOf(value);
  const names = members.slice(0, 20).map(([name]) => name);
  return `the ${names.length === 1 ? "field" : "fields"} ${excerpt(withoutLogins(names.join(", ")))}`;
}

export function fieldText(path: readonly PropertyKey[]): string {
  let text = "";
  for (const step of path) {
    text += typeof step === "number" ? `[${step}]` : `${text === "" ? "" : "."}${excerpt(String(step), shownOfKey)}`;
  }
  return text;
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value: unknown = root;
  for (const step of path) value = (value as Record<PropertyKey, unknown> | undefined | null)?.[step];
  return value;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
