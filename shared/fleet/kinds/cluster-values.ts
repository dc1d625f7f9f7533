import * as z from "zod";
import { clusterSelectionSchema } from "#shared/fleet/kinds/cluster-selection.ts";
import { installationMetadata, ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { valuesSchema } from "#shared/fleet/kinds/values.ts";

const mostPriority = 1000;

export const clusterValuesSpec = z.strictObject({
  clusters: clusterSelectionSchema,
  /** When two set the same value of a cluster, the higher priority wins; among equal ones the later name. */
  priority: z
    .int(`must be a whole number from 0 to ${mostPriority}`)
    .min(0, `must be a whole number from 0 to ${mostPriority}`)
    .max(mostPriority, `must be a whole number from 0 to ${mostPriority}`)
    .default(0),
  values: valuesSchema,
});
export type ClusterValuesSpec = z.infer<typeof clusterValuesSpec>;

export const clusterValuesDocument = z.strictObject({
  apiVersion: z.literal(ourApiVersion),
  kind: z.literal("ClusterValues"),
  metadata: installationMetadata,
  spec: clusterValuesSpec,
});
