/**
 * Renders a chart for both values of `.Release.IsInstall` and `.Release.IsUpgrade`. A cluster without the release can
 * get other objects than a cluster that has it. One rendering holds both.
 */
import { objectIdKey } from "#shared/kube/object-id.ts";
import { type ApplyEvent, hookMarksOf } from "#shared/kube/order-marks.ts";
import type { Chart } from "#shared/source/helm/chart.ts";
import { firstDifference } from "#shared/source/helm/second-rendering.ts";
import { compareManifests, type Manifest } from "#shared/source/manifests.ts";

const words = ["IsInstall", "IsUpgrade"];

/** Whether a template, or a value that a template can evaluate, contains one of the words. */
export function asksForEvent({ files }: Chart, values: readonly string[]): boolean {
  const texts = [...files.values()].map((content) => Buffer.from(content.buffer, content.byteOffset, content.length));
  return words.some((word) => texts.some((text) => text.includes(word)) || values.some((text) => text.includes(word)));
}

/** The objects for an install and for an upgrade. Both are the same object when nothing differs. */
export type ByEvent<T> = Readonly<Record<ApplyEvent, T>>;

/**
 * Adds to each side the hooks that only the other side has. A hook does not run at an event that is not its own, and
 * stays where it is. A chart whose renderings differ only in such hooks therefore has the same objects on both sides.
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
