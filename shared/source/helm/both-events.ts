/**
 * What a chart makes of `.Release.IsInstall` and `.Release.IsUpgrade`: a cluster that has nothing of it yet gets other objects
 * than one that has. One rendering holds both.
 */
import { objectIdKey } from "#shared/kube/object-id.ts";
import { type ApplyEvent, hookMarksOf } from "#shared/kube/order-marks.ts";
import type { Chart } from "#shared/source/helm/chart.ts";
import { firstDifference } from "#shared/source/helm/second-rendering.ts";
import { compareManifests, type Manifest } from "#shared/source/manifests.ts";

const words = ["IsInstall", "IsUpgrade"];

/** Whether a template, or a value that one may evaluate, has one of the words. */
export function asksForEvent({ files }: Chart, values: readonly string[]): boolean {
  const texts = [...files.values()].map((content) => Buffer.from(content.buffer, content.byteOffset, content.length));
  return words.some((word) => texts.some((text) => text.includes(word)) || values.some((text) => text.includes(word)));
}

/** What there is at an install, and at an upgrade: one and the same where that is so. */
export type ByEvent<T> = Readonly<Record<ApplyEvent, T>>;

/**
 * Each side with the hooks that only the other has, for its own event: they are not run then, and stay where they were.
 * So a chart of which nothing but these differs has the same objects at both.
 */
export function withHooksOfBoth({ install, upgrade }: ByEvent<readonly Manifest[]>): ByEvent<readonly Manifest[]> {
  if (install === upgrade) return { install, upgrade };
  const joined = {
    install: withRestingHooks(install, upgrade, "install"),
    upgrade: withRestingHooks(upgrade, install, "upgrade"),
  };
  const isSame = firstDifference(joined.install, joined.upgrade) === undefined;
  return isSame ? { install: joined.install, upgrade: joined.install } : joined;
}

function withRestingHooks(
  own: readonly Manifest[],
  others: readonly Manifest[],
  event: ApplyEvent,
): readonly Manifest[] {
  const known = new Set(own.map(({ id }) => objectIdKey(id)));
  const resting = others.filter((manifest) => !known.has(objectIdKey(manifest.id)) && isResting(manifest, event));
  return [...own, ...resting].toSorted(compareManifests);
}

function isResting({ object }: Manifest, event: ApplyEvent): boolean {
  const marks = hookMarksOf(object);
  return marks !== undefined && !("problem" in marks) && marks.phases[event] === undefined;
}
