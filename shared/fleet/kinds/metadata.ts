import * as z from "zod";
import { boundedMap } from "#shared/base/bounded.ts";
import { dnsLabel, nameRule, nameSchema } from "#shared/base/name-schema.ts";

/** The API version of every kind a user writes. */
export const ourApiVersion = "starling.dev/v1alpha1";

const labelKey = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const labelValue = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

export const labelKeySchema = z
  .string()
  .regex(labelKey, "must be a Kubernetes label key: an optional DNS prefix and /, then at most 63 characters");

export const labelValueSchema = z
  .string()
  .regex(labelValue, "must be a Kubernetes label value: at most 63 characters of A-Z, a-z, 0-9, -, _ and .");

export const labelsSchema = boundedMap(labelKeySchema, labelValueSchema, 100);

/** Size limit of Kubernetes for all keys and values of an object's annotations. */
const maxAnnotationBytes = 262_144;

const annotationsSchema = boundedMap(labelKeySchema, z.string(), 1000).refine(
  (annotations) => new TextEncoder().encode(Object.entries(annotations).flat().join("")).length <= maxAnnotationBytes,
  `must have at most ${maxAnnotationBytes} bytes together, keys and values`,
);

const common = {
  name: nameSchema,
  labels: labelsSchema.optional(),
  annotations: annotationsSchema.optional(),
};

const namespaceSchema = z
  .string({ error: ({ input }) => (input === undefined ? "name one here, with -n, or in the context" : undefined) })
  .regex(dnsLabel, nameRule);

export const namespacedMetadata = z.strictObject({ ...common, namespace: namespaceSchema });
export const installationMetadata = z.strictObject(common);
