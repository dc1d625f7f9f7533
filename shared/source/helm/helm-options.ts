import * as z from "zod";
import { boundedList, boundedText } from "#shared/base/bounded.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { sourcePath } from "#shared/source/source-path.ts";

/** Longer ones Helm refuses. */
export const maxReleaseName = 53;
/** In a template, as JSON: what is more stands in a file. */
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
      message: "holds an integer beyond 2^53, of which Helm would change the digits; quote it",
    });
  } else if (bytes > maxValuesBytes) {
    const message = `must have at most ${maxValuesBytes} bytes as JSON; put them into a file, and name it in valuesFrom`;
    context.addIssue({ code: "custom", message });
  }
});

/** @returns undefined for what JSON as JavaScript has it cannot hold. */
function bytesOf(value: unknown): number | undefined {
  try {
    return new TextEncoder().encode(JSON.stringify(value)).length;
  } catch {
    return undefined;
  }
}

/** Besides the chart's own: each is read whole where the chart is rendered. */
const maxOtherSources = 5;

const valuesFile = z.strictObject({
  /** Another Source of the same namespace, that has the file; absent: the template's. */
  source: nameSchema.optional(),
  /** From the root of the repository; may hold `{{ cluster.name }}` and its like, as `path` may. */
  path: sourcePath,
  /** Whether it may be missing. */
  optional: z.boolean().default(false),
});

const apiVersion = boundedText(316).regex(
  /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[a-z0-9]+(\/[A-Za-z0-9]+)?$/,
  "must be an API version as monitoring.coreos.com/v1, or one with a kind as monitoring.coreos.com/v1/ServiceMonitor",
);

export const helmOptions = z.strictObject({
  /** Absent: the name of the template, or of the Sync. */
  releaseName: releaseName.optional(),
  /** They go over the files', and those over the chart's own. A text that is one whole `{{ cluster.values.KEY }}` is the cluster's. */
  values: values.optional(),
  /** Files of this Source, or of others; a later one goes over an earlier one. */
  valuesFrom: boundedList(valuesFile, 20)
    .refine(
      (files) => new Set(files.flatMap(({ source }) => source ?? [])).size <= maxOtherSources,
      `may name at most ${maxOtherSources} other Sources; put the files of some into one`,
    )
    .optional(),
  /** Those in the chart's folder `crds`: left out, made where they are not there, or applied like every other object. */
  crds: z
    .enum(["Skip", "Create", "CreateReplace"], 'must be "Skip", "Create" or "CreateReplace"')
    .default("CreateReplace"),
  /** What a chart that looks into the cluster is told: nothing, for it is refused, or that nothing is there. */
  lookup: z.enum(["Refuse", "Empty"], 'must be "Refuse" or "Empty"').default("Refuse"),
  /** What of it Helm would run around an install or an upgrade: it is run then, left out, or refused. */
  hooks: z.enum(["Honor", "Omit", "Refuse"], 'must be "Honor", "Omit" or "Refuse"').default("Honor"),
  /** What the chart is told that it is rendered for. Absent: what is known of the cluster, else the renderer's own. */
  kubeVersion: boundedText(20)
    .regex(/^\d+\.\d+(\.\d+)?$/, "must be a Kubernetes version as 1.34")
    .optional(),
  /** Those that the chart is told of besides the ones that every cluster has. */
  apiVersions: boundedList(apiVersion, 100).optional(),
});
export type HelmOptions = z.infer<typeof helmOptions>;
