import { isJsonObject } from "#shared/base/json.ts";
import { percentEncode } from "#shared/base/percent-encoding.ts";
import type { Origin } from "#shared/fleet/forecast/origins.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { isSecret, secretTexts } from "#shared/kube/masked-object.ts";

/** Shorter values occur in any text. */
const shownLength = 4;

/** Shortest value that is searched in base64 texts, such as the login in a registry's configuration. */
const encodedPart = /[A-Za-z0-9+/]{8,}={0,2}/g;

/** Functions that may have changed a value for a Secret: digits of a hash, capitals, a part. */
const givenOn = /^(?:parameters\.|render\.helm\.values\b)/;
const truth = /^(?:true|false|null)$/;

/**
 * Origins as people may see them: a value in a Secret of the rendering is `***`, wherever it was set, also when it is
 * indented, quoted, URL-encoded, or base64 in the Secret. A template's changes to a value are unknown: beside a Secret,
 * or left-out objects, a value is only shown where it also occurs in the open.
 * @param objects - all objects of the rendering: a secret of an install is a secret at an upgrade, too.
 * @param leftOut - whether further objects exist that nobody sees, such as hooks that are not run.
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

/** All texts of it, in the one form in which they are written. */
function textOf(object: ManifestObject): string {
  return leaves(object).join("\n");
}

function decodedParts(text: string): readonly string[] {
  return (text.match(encodedPart) ?? []).map((part) => Buffer.from(part, "base64").toString());
}

/** The forms in which a template may have written it. */
function formsOf(value: string): readonly string[] {
  const quoted = JSON.stringify(value).slice(1, -1);
  const forms = [value, quoted, percentEncode(value.toWellFormed())].map(withoutBlanks);
  return [...new Set(forms)].filter((form) => form !== "");
}

/** An indented text has other lines. */
function withoutBlanks(text: string): string {
  return text.replaceAll(/\s+/g, "");
}

/** Texts of a list or a map that is shown as JSON. */
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
