import { isJsonObject } from "#shared/base/json.ts";
import type { Origin } from "#shared/fleet/forecast/origins.ts";
import type { ManifestObject } from "#shared/kube/kube-object.ts";
import { secretTexts } from "#shared/kube/masked-object.ts";

/** Shorter ones are in any text. */
const tellingLength = 4;

/** Origins as people may be shown them: a value that came into a Secret of the rendering is `***`, wherever it was said. */
export function maskedOrigins(origins: readonly Origin[], objects: readonly ManifestObject[]): readonly Origin[] {
  const texts = objects.flatMap(secretTexts);
  const isIn = (text: string, other: string) => other.length >= tellingLength && text.includes(other);
  const isTold = (value: string) =>
    value !== "" && texts.some((text) => text === value || isIn(text, value) || isIn(value, text));
  return origins.map((origin) => {
    const parts = [origin.value, ...textsIn(origin.value)];
    return parts.some(isTold) ? { ...origin, value: "***" } : origin;
  });
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
