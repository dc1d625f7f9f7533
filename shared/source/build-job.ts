/**
 * The job that `render` gives to `build`, and the answer. `build` runs code that a repository supplies. Therefore its
 * answer is only data: it is parsed, its sizes are limited, and `render` checks everything that it can check.
 */
import * as z from "zod";
import { buildOptions } from "#shared/source/render-options.ts";
import { specialisation } from "#shared/source/specialisation.ts";

/** The limit of a staged rendering. A worker could not apply a larger one. */
export const maxRenderingBytes = 64 * 1024 * 1024;

const mib = 1024 * 1024;
/**
 * The output is padded to the first of these sizes that it fits into. Nobody knows the output's size before the
 * rendering, and a presigned URL is for one size. So a build that was taken over leaves at most an object of the
 * largest size.
 */
export const uploadSizes: readonly number[] = [mib / 16, mib / 4, mib, 4 * mib, 16 * mib, 32 * mib, maxRenderingBytes];

export const buildJob = z.strictObject({
  artifactDigest: z.string(),
  /** The folder inside the artifact. */
  path: z.string(),
  render: buildOptions.optional(),
  specialise: specialisation.optional(),
  /** GET URLs of the artifacts, and one PUT URL of the output for each size. The job can reach nothing else. */
  artifactUrl: z.url(),
  /** The other artifacts, from which files of values are read. */
  besides: z.array(z.strictObject({ artifactDigest: z.string(), artifactUrl: z.url() })).optional(),
  renderingUrls: z.array(z.strictObject({ bytes: z.int().positive(), url: z.url() })),
});
export type BuildJob = z.infer<typeof buildJob>;

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);

export const buildAnswer = z.discriminatedUnion("outcome", [
  z.strictObject({
    outcome: z.literal("done"),
    digest,
    /** The size of the output without its padding. */
    bytes: z.int().min(1).max(maxRenderingBytes),
    objects: z.int().min(1).max(1_000_000),
    /** Sentences about everything that was left out, with the reason. */
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
