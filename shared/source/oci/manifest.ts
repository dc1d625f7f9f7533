/** Manifests of OCI registries, as the image specification describes them. */

import * as z from "zod";
import { jsonOf } from "#shared/base/json-of.ts";

export const manifestTypes = [
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
] as const;
export const indexTypes = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
] as const;

export const digestPattern = /^sha256:[0-9a-f]{64}$/;

const descriptor = z.object({
  mediaType: z.string(),
  digest: z.string().regex(digestPattern),
  size: z.number().int().min(0),
  artifactType: z.string().optional().catch(undefined),
  annotations: z.record(z.string(), z.string()).optional().catch(undefined),
});
export type Descriptor = z.infer<typeof descriptor>;

const manifestSchema = z.object({
  mediaType: z.string().optional(),
  manifests: z.array(z.unknown()).optional(),
  config: descriptor.optional(),
  layers: z.array(descriptor).max(1000).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
});

export interface OciManifest {
  readonly layers: readonly Descriptor[];
  readonly annotations: Readonly<Record<string, string>>;
}

/** @returns the manifest, or what is wrong with it. */
export function readManifest(bytes: Uint8Array): OciManifest | string {
  const value = jsonOf(new TextDecoder().decode(bytes));
  if (value === undefined) return "is not JSON";
  const parsed = manifestSchema.safeParse(value);
  if (!parsed.success)
    return "is not a manifest that Starling reads: it lacks layers with a media type, a digest and a size";
  const { mediaType, manifests, layers, annotations } = parsed.data;
  if (manifests !== undefined || indexTypes.some((type) => type === mediaType)) {
    return "is an index of images for several platforms; push the files as one artifact";
  }
  return { layers: layers ?? [], annotations: annotations ?? {} };
}

const listing = z.object({ manifests: z.array(z.unknown()) });

/** The manifests that an index lists, without those that are no descriptors; undefined if it is no index. */
export function readIndex(bytes: Uint8Array): readonly Descriptor[] | undefined {
  const { data } = listing.safeParse(jsonOf(new TextDecoder().decode(bytes)));
  return data?.manifests.flatMap((each) => descriptor.safeParse(each).data ?? []);
}

/** The version that a tag stands for: tags have no `+`, so that Helm and others write `_` for it. */
export function versionOfTag(tag: string): string {
  return tag.replaceAll("_", "+");
}
