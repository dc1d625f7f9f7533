/**
 * The changes that are made to all or some objects of a folder after its rendering. They are the same on every cluster,
 * because they are data.
 */
import * as z from "zod";
import { boundedList, boundedMap, boundedText } from "#shared/base/bounded.ts";
import { sourcePath } from "#shared/source/source-path.ts";

const selector = boundedText(500).min(1).optional();

const patch = z.strictObject({
  /**
   * The objects to patch. Names and kinds are regular expressions, as in kustomize. Default: the object that the patch
   * names.
   */
  target: z
    .strictObject({
      group: selector,
      version: selector,
      kind: selector,
      name: selector,
      namespace: selector,
      labelSelector: selector,
      annotationSelector: selector,
    })
    .optional(),
  /** A strategic merge patch, or the operations of a JSON patch (RFC 6902), as YAML. */
  patch: boundedText(65_536).min(1),
});

const imageName = boundedText(500).regex(
  /^[A-Za-z0-9]+([._:/-]+[A-Za-z0-9]+)*$/,
  "must be the name of an image without tag and digest, such as ghcr.io/acme/shop",
);

const image = z
  .strictObject({
    /** The image's name as manifests write it, without tag and digest. */
    name: imageName,
    newName: imageName.optional(),
    newTag: boundedText(128)
      .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/, "must be a tag such as 6.9.1: characters of A-Z, a-z, 0-9, _, . and -")
      .optional(),
    digest: boundedText(200)
      .regex(/^[a-z0-9]+:[0-9a-f]{32,}$/, "must be a digest such as sha256:…, in hexadecimal digits")
      .optional(),
  })
  .refine(
    ({ newName, newTag, digest }) => newName !== undefined || newTag !== undefined || digest !== undefined,
    "needs newName, newTag or digest: without them it changes nothing",
  )
  .refine(
    ({ newTag, digest }) => newTag === undefined || digest === undefined,
    "has newTag and digest; keep one of them",
  );

const affix = boundedText(100).regex(/^[a-z0-9.-]+$/, "must be characters of a-z, 0-9, - and .");
const marks = z.strictObject({
  labels: boundedMap(z.string().min(1), boundedText(4096), 50).optional(),
  annotations: boundedMap(z.string().min(1), boundedText(4096), 50).optional(),
});

export const editFields = {
  /** Folders with a Component of kustomize, from the root of the repository. */
  components: boundedList(sourcePath, 20).optional(),
  patches: boundedList(patch, 50).optional(),
  /** Put before the name of every object, and before that name in references to it. */
  namePrefix: affix.optional(),
  nameSuffix: affix.optional(),
  images: boundedList(image, 100).optional(),
  /** Set on every object, over its own values, but not in templates of Pods and not in selectors. */
  commonMetadata: marks.optional(),
  /** Adds the Namespace `targetNamespace` to the objects, with these labels and annotations. */
  createNamespace: marks.optional(),
};

/** The edits as a part of a rendering's key. */
export const edits = z.strictObject(editFields);
export type Edits = z.infer<typeof edits>;
