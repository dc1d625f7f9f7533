import { isJsonObject } from "#shared/base/json.ts";
import { percentEncode } from "#shared/base/percent-encoding.ts";
import type { Origin } from "#shared/fleet/forecast/origins.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { secretTexts } from "#shared/kube/masked-object.ts";

/** Shorter ones are in any text. */
const tellingLength = 4;

/** Of what may be base64 in a text, as the login in a registry's configuration is. */
const encodedPart = /[A-Za-z0-9+/]{8,}={0,2}/g;

/**
 * Origins as people may be shown them: a value that came into a Secret of the rendering is `***`, wherever it was said, also
 * where it is indented there, quoted, encoded for an address, or base64 in a text.
 * @param objects - all of the rendering: what an install alone has is a secret at an upgrade, too.
 */
export function maskedOrigins(origins: readonly Origin[], objects: readonly ManifestObject[]): readonly Origin[] {
  const written = new Set(objects.flatMap(secretTexts));
  const texts = [...new Set([...written, ...[...written].flatMap(decodedParts)].map(withoutBlanks))];
  const isIn = (text: string, other: string) => other.length >= tellingLength && text.includes(other);
  const isTold = (value: string) =>
    formsOf(value).some((form) => texts.some((text) => text === form || isIn(text, form) || isIn(form, text)));
  return origins.map((origin) => {
    const parts = [origin.value, ...textsIn(origin.value)];
    return parts.some(isTold) ? { ...origin, value: "***" } : origin;
  });
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
  if (Array.isArray(value)) return value.flatMap(leaves);
  return isJsonObject(value) ? Object.values(value).flatMap(leaves) : [];
}
