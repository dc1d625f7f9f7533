/**
 * What `render` hands to `build` and gets back. The other side of it runs what a repository says, so an answer is data:
 * parsed, bounded, and believed in nothing that can be checked.
 */
import * as z from "zod";
import { buildOptions } from "#shared/source/render-options.ts";
import { specialisation } from "#shared/source/specialisation.ts";

/** Of what is staged: more than this is no rendering that a worker could apply. */
export const maxRenderingBytes = 64 * 1024 * 1024;

const mib = 1024 * 1024;
/**
 * What comes out is filled up to the first of these that it fits into. Nobody knows its size before it is rendered, and what is
 * presigned is for one size: so a build that was taken over leaves no more than the largest.
 */
export const uploadSizes: readonly number[] = [mib / 16, mib / 4, mib, 4 * mib, 16 * mib, 32 * mib, maxRenderingBytes];

export const buildJob = z.strictObject({
  artifactDigest: z.string(),
  /** The folder inside the artifact. */
  path: z.string(),
  render: buildOptions.optional(),
  specialise: specialisation.optional(),
  /** GETs of the artifacts, and PUTs of what comes out, one for each size: all that the job can reach. */
  artifactUrl: z.url(),
  /** Those that files of values are from. */
  besides: z.array(z.strictObject({ artifactDigest: z.string(), artifactUrl: z.url() })).optional(),
  renderingUrls: z.array(z.strictObject({ bytes: z.int().positive(), url: z.url() })),
});
export type BuildJob = z.infer<typeof buildJob>;

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);

export const buildAnswer = z.discriminatedUnion("outcome", [
  z.strictObject({
    outcome: z.literal("done"),
    digest,
    /** Of what was left, without what it was filled up with. */
    bytes: z.int().min(1).max(maxRenderingBytes),
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
