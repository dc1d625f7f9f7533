import * as z from "zod";

export const renderOptions = z
  .strictObject({ plain: z.strictObject({}).optional(), kustomize: z.strictObject({}).optional() })
  .refine(
    (render) => (render.plain === undefined) !== (render.kustomize === undefined),
    "needs exactly one of plain or kustomize; leave render out to have it detected",
  );
export type RenderOptions = z.infer<typeof renderOptions>;
