/**
 * A rendering is the same for a cluster that has it and for one that has not. What a chart makes of `.Release.IsInstall` and
 * `.Release.IsUpgrade` has to be the same then, but for hooks, which are run at the one or at the other.
 */
import { describeObject } from "#shared/kube/object-id.ts";
import { hookMarksOf } from "#shared/kube/order-marks.ts";
import type { Chart } from "#shared/source/helm/chart.ts";
import { firstDifference } from "#shared/source/helm/second-rendering.ts";
import { type Manifest, readManifests } from "#shared/source/manifests.ts";
import type { ManifestDocument } from "#shared/source/yaml/manifest-documents.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

const words = ["IsInstall", "IsUpgrade"];

/** Whether a template, or a value that one may evaluate, has one of the words. */
export function asksForEvent({ files }: Chart, values: readonly string[]): boolean {
  const texts = [...files.values()].map((content) => Buffer.from(content.buffer, content.byteOffset, content.length));
  return words.some((word) => texts.some((text) => text.includes(word)) || values.some((text) => text.includes(word)));
}

/**
 * The documents of an install, with the hooks of an upgrade in place of what is only for that.
 * @throws ManifestError `InstallDiffers` naming the first object that is another at an upgrade, and the field.
 */
export function forBothEvents(
  install: readonly ManifestDocument[],
  upgrade: readonly ManifestDocument[],
): ManifestDocument[] {
  const sides = { install: partsOf(install), upgrade: partsOf(upgrade) };
  const difference =
    firstDifference(readManifests(sides.install.alike), readManifests(sides.upgrade.alike)) ??
    firstDifference(readManifests(sides.install.both), readManifests(sides.upgrade.both));
  if (difference !== undefined) throw differing(difference.manifest, difference.field);
  return [...sides.install.alike, ...sides.install.both, ...sides.install.install, ...sides.upgrade.upgrade];
}

interface Parts {
  /** What is no hook, and hooks that are left out or refused. */
  readonly alike: readonly ManifestDocument[];
  /** Hooks by when they are run. */
  readonly both: readonly ManifestDocument[];
  readonly install: readonly ManifestDocument[];
  readonly upgrade: readonly ManifestDocument[];
}

function partsOf(documents: readonly ManifestDocument[]): Parts {
  const parts: Record<keyof Parts, ManifestDocument[]> = { alike: [], both: [], install: [], upgrade: [] };
  for (const document of documents) parts[partOf(document)].push(document);
  return parts;
}

function partOf({ object }: ManifestDocument): keyof Parts {
  const marks = hookMarksOf(object);
  if (marks === undefined || "problem" in marks) return "alike";
  const { install, upgrade } = marks.phases;
  if (install !== undefined && upgrade !== undefined) return "both";
  return install !== undefined ? "install" : "upgrade";
}

function differing({ id, place: { file } }: Manifest, field: string): ManifestError {
  const place = { file, object: describeObject(id), ...(field === "" ? {} : { field }) };
  return new ManifestError(
    "InstallDiffers",
    place,
    "is another at an upgrade than at an install (.Release.IsInstall, .Release.IsUpgrade), and a rendering is for both: clusters that have it, and clusters that get it. " +
      "Set the value by which the chart takes it from you, or turn it off",
  );
}
