/** What is done to the objects of an artifact for some clusters: data, written out, in the order in which it is done. */
import * as z from "zod";
import { edits } from "#shared/source/edits.ts";

export const specialisation = z.strictObject({
  edits: edits.optional(),
  /** Of all objects that are in one. */
  namespace: z.string().optional(),
  /** What `${NAME}` in texts comes to. Absent: texts stay as they are. */
  variables: z.record(z.string(), z.string()).optional(),
  /** In the YAML that Flux would write of the objects, and not in their texts. */
  mode: z.literal("text").optional(),
});
export type Specialisation = z.infer<typeof specialisation>;
