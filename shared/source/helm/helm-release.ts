import * as z from "zod";

const valuesFile = z.strictObject({
  path: z.string(),
  /** Whether the file may be missing. */
  optional: z.boolean().default(false),
  /** The other Source that has the file: its name, and the digest of its artifact. Absent: the chart's own. */
  from: z.strictObject({ source: z.string(), artifactDigest: z.string() }).optional(),
});

/** Everything that a chart is rendered with. It is a part of the rendering's key. */
export const helmRelease = z.strictObject({
  releaseName: z.string(),
  /** `.Release.Namespace`. */
  namespace: z.string(),
  /** As JSON. */
  values: z.string().optional(),
  valuesFrom: z.array(valuesFile).optional(),
  crds: z.enum(["Skip", "Create", "CreateReplace"]),
  lookup: z.enum(["Refuse", "Empty"]),
  hooks: z.enum(["Honor", "Omit", "Refuse"]),
  /** `.Capabilities.KubeVersion`, as `1.34`; absent: the renderer's own. */
  kubeVersion: z.string().optional(),
  /** Additions to `.Capabilities.APIVersions`, which contains Kubernetes' own versions. */
  apiVersions: z.array(z.string()).optional(),
});
export type HelmRelease = z.infer<typeof helmRelease>;

/** Digests of the other artifacts from which files of values are read, each once. */
export function valueArtifacts({ valuesFrom = [] }: Pick<HelmRelease, "valuesFrom"> = {}): readonly string[] {
  return [...new Set(valuesFrom.flatMap(({ from }) => from?.artifactDigest ?? []))];
}
