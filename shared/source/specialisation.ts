/** How the objects of an artifact are changed for some clusters: plain data, in the order of the changes. */
import * as z from "zod";
import { edits } from "#shared/source/edits.ts";

export const specialisation = z.strictObject({
  edits: edits.optional(),
  /** The namespace of all namespaced objects. */
  namespace: z.string().optional(),
  /** The values of `${NAME}` in strings. Absent: strings stay as they are. */
  variables: z.record(z.string(), z.string()).optional(),
  /** Substitutes in the YAML that Flux would write of the objects, and not in their strings. */
  mode: z.literal("text").optional(),
});
export type Specialisation = z.infer<typeof specialisation>;
