import { isJsonObject } from "#shared/base/json.ts";
import { percentEncode } from "#shared/base/percent-encoding.ts";
import type { Origin } from "#shared/fleet/forecast/origins.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { isSecret, secretTexts } from "#shared/kube/masked-object.ts";

/** Shorter ones are in any text. */
const shownLength = 4;

/** Of what may be base64 in a text, as the login in a registry's configuration is. */
const encodedPart = /[A-Za-z0-9+/]{8,}={0,2}/g;

/** What could be given to a Secret, and in any form: digits of a hash, capitals, a part. */
const givenOn = /^(?:parameters\.|render\.helm\.values\b)/;
const truth = /^(?:true|false|null)$/;

/**
 * Origins as people may be shown them: a value that came into a Secret of the rendering is `***`, wherever it was said, also
 * where it is indented there, quoted, encoded for an address, or base64 in a text. What a template made of a value is not
 * known: beside a Secret, or what was left out, a value is told where it stands in the open as well.
 * @param objects - all of the rendering: what an install alone has is a secret at an upgrade, too.
 * @param leftOut - whether there may be others, which nobody sees, as hooks that are not run.
 */
export function maskedOrigins(
  origins: readonly Origin[],
  objects: readonly ManifestObject[],
  leftOut: "nothing" | "something" = "nothing",
): readonly Origin[] {
  const written = new Set(objects.flatMap(secretTexts));
  const texts = [...new Set([...written, ...[...written].flatMap(decodedParts)].map(withoutBlanks))];
  const isIn = (text: string, other: string) => other.length >= shownLength && text.includes(other);
  const isReported = (value: string) =>
    formsOf(value).some((form) => texts.some((text) => text === form || isIn(text, form) || isIn(form, text)));
  const isHidden = leftOut === "something" || objects.some(isSecret);
  const open = isHidden
    ? objects.filter((object) => !isSecret(object)).map((object) => withoutBlanks(textOf(object)))
    : [];
  const isOpen = (value: string) => formsOf(value).some((form) => open.some((text) => text.includes(form)));
  const isUnseen = (value: string) => value.length >= shownLength && !truth.test(value) && !isOpen(value);
  return origins.map((origin) => {
    const leaves = textsIn(origin.value);
    const parts = leaves.length === 0 ? [origin.value] : leaves;
    const mayBeSecret = isHidden && givenOn.test(origin.field) && parts.some(isUnseen);
    return mayBeSecret || [origin.value, ...leaves].some(isReported) ? { ...origin, value: "***" } : origin;
  });
}

/** All texts of it, as they are written in no other way. */
function textOf(object: ManifestObject): string {
  return leaves(object).join("\n");
}

function decodedParts(text: string): readonly string[] {
  return (text.match(encodedPart) ?? []).map((part) => Buffer.from(part, "base64").toString());
}

/** As a template may have written it. */
function formsOf(value: string): readonly string[] {
  const quoted = JSON.stringify(value).slice(1, -1);
  const forms = [value, quoted, percentEncode(value.toWellFormed())].map(withoutBlanks);
  return [...new Set(forms)].filter((form) => form !== "");
}

/** An indented text has others. */
function withoutBlanks(text: string): string {
  return text.replaceAll(/\s+/g, "");
}

/** Of a list or a map that is shown as JSON. */
function textsIn(value: string): readonly string[] {
  if (!/^[[{]/.test(value)) return [];
  try {
    return leaves(JSON.parse(value));
  } catch {
    return [];
  }
}

function leaves(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (typeof value === "number" || typeof value === "bigint") return [String(value)];
  if (Array.isArray(value)) return value.flatMap(leaves);
  return isJsonObject(value) ? Object.values(value).flatMap(leaves) : [];
}
