import * as z from "zod";
import { helmOptions } from "#shared/source/helm/helm-options.ts";
import { helmRelease } from "#shared/source/helm/helm-release.ts";

const plain = z.strictObject({}).optional();
const kustomize = z.strictObject({}).optional();

/** The options in a template. */
export const renderOptions = z
  .strictObject({ plain, kustomize, helm: helmOptions.optional() })
  .refine(
    (render) => Object.values(render).filter((way) => way !== undefined).length === 1,
    "needs exactly one of plain, kustomize or helm; leave render out to detect the tool",
  );
export type RenderOptions = z.infer<typeof renderOptions>;

/** The options as a part of a rendering's key. Nothing in them depends on a cluster any more. */
export const buildOptions = z.strictObject({ plain, kustomize, helm: helmRelease.optional() });
export type BuildOptions = z.infer<typeof buildOptions>;
