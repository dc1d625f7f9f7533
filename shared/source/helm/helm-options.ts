import * as z from "zod";
import { boundedList, boundedText } from "#shared/base/bounded.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { sourcePath } from "#shared/source/source-path.ts";

/** Helm refuses longer names. */
export const maxReleaseName = 53;
/** The limit of values in a template, as JSON. Larger values belong in a file. */
const maxValuesBytes = 65_536;

const releaseName = boundedText(maxReleaseName).regex(
  /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
  `must be 1 to ${maxReleaseName} characters of a-z, 0-9 and -, beginning and ending with a letter or digit`,
);

const values = z.record(z.string(), z.unknown()).superRefine((map, context) => {
  const bytes = bytesOf(map);
  if (bytes === undefined) {
    context.addIssue({
      code: "custom",
      message: "contains an integer beyond 2^53, whose digits Helm would change; put it in quotes",
    });
  } else if (bytes > maxValuesBytes) {
    const message = `must have at most ${maxValuesBytes} bytes as JSON; put the values into a file and name it in valuesFrom`;
    context.addIssue({ code: "custom", message });
  }
});

/** @returns undefined for a value that JavaScript's JSON cannot hold. */
function bytesOf(value: unknown): number | undefined {
  try {
    return new TextEncoder().encode(JSON.stringify(value)).length;
  } catch {
    return undefined;
  }
}

/** Sources besides the chart's own. The renderer reads each of them completely. */
const maxOtherSources = 5;

const valuesFile = z.strictObject({
  /** Another Source of the same namespace that has the file. Default: the template's Source. */
  source: nameSchema.optional(),
  /**
   * From the root of the repository. The path may contain `{{ cluster.name }}` and the other variables that `path`
   * allows.
   */
  path: sourcePath,
  /** Whether the file may be missing. */
  optional: z.boolean().default(false),
});

const apiVersion = boundedText(316).regex(
  /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[a-z0-9]+(\/[A-Za-z0-9]+)?$/,
  "must be an API version such as monitoring.coreos.com/v1, or one with a kind, such as monitoring.coreos.com/v1/ServiceMonitor",
);

export const helmOptions = z.strictObject({
  /** Default: the name of the template, or of the Sync. */
  releaseName: releaseName.optional(),
  /**
   * They override the files' values, and the files' values override the chart's own. A string that consists of one `{{
   * cluster.values.KEY }}` is replaced by the cluster's value.
   */
  values: values.optional(),
  /** Files of this Source or of other Sources. A later file overrides an earlier one. */
  valuesFrom: boundedList(valuesFile, 20)
    .refine(
      (files) => new Set(files.flatMap(({ source }) => source ?? [])).size <= maxOtherSources,
      `may name at most ${maxOtherSources} other Sources; put the files of several Sources into one`,
    )
    .optional(),
  /**
   * The objects in the chart's folder `crds`: left out, created where they are missing, or applied like all other
   * objects.
   */
  crds: z
    .enum(["Skip", "Create", "CreateReplace"], 'must be "Skip", "Create" or "CreateReplace"')
    .default("CreateReplace"),
  /** The reaction to a call of `lookup`: the chart is refused, or the call finds nothing. */
  lookup: z.enum(["Refuse", "Empty"], 'must be "Refuse" or "Empty"').default("Refuse"),
  /**
   * The hooks that Helm would run around an install or an upgrade: they run, are left out, or make the chart refused.
   */
  hooks: z.enum(["Honor", "Omit", "Refuse"], 'must be "Honor", "Omit" or "Refuse"').default("Honor"),
  /**
   * The version that the chart is rendered for. Default: the cluster's version if it is known, otherwise the renderer's
   * own.
   */
  kubeVersion: boundedText(20)
    .regex(/^\d+\.\d+(\.\d+)?$/, "must be a Kubernetes version such as 1.34")
    .optional(),
  /** API versions that the chart sees in addition to those that every cluster has. */
  apiVersions: boundedList(apiVersion, 100).optional(),
});
export type HelmOptions = z.infer<typeof helmOptions>;
