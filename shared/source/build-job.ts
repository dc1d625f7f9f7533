/**
 * What `render` hands to `build` and gets back. The other side of it runs what a repository says, so an answer is data:
 * parsed, bounded, and believed in nothing that can be checked.
 */
import * as z from "zod";
import { buildOptions } from "#shared/source/render-options.ts";
import { specialisation } from "#shared/source/specialisation.ts";

/** Of what is staged: more than this is no rendering that a worker could apply. */
export const maxRenderingBytes = 64 * 1024 * 1024;

export const buildJob = z.strictObject({
  artifactDigest: z.string(),
  /** The folder inside the artifact. */
  path: z.string(),
  render: buildOptions.optional(),
  specialise: specialisation.optional(),
  /** GETs of the artifacts, and a PUT of what comes out: all that the job can reach. */
  artifactUrl: z.url(),
  /** Those that files of values are from. */
  besides: z.array(z.strictObject({ artifactDigest: z.string(), artifactUrl: z.url() })).optional(),
  renderingUrl: z.url(),
});
export type BuildJob = z.infer<typeof buildJob>;

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);

export const buildAnswer = z.discriminatedUnion("outcome", [
  z.strictObject({
    outcome: z.literal("done"),
    digest,
    objects: z.int().min(1).max(1_000_000),
    /** What was left out, and why, in words. */
    leftOut: z.array(z.string().max(500)).max(20).optional(),
  }),
  z.strictObject({
    outcome: z.literal("failed"),
    code: z.string().regex(/^[A-Z][A-Za-z]{1,40}$/),
    message: z.string().max(2000),
    permanent: z.boolean(),
  }),
]);
export type BuildAnswer = z.infer<typeof buildAnswer>;
