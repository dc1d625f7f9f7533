/**
 * The answers about artifacts, for programs outside. docs/api has their JSON Schemas, and test/unit/docs/schemas.test.ts
 * writes them. A program that reads answers must not mind members that it does not know.
 */
import * as z from "zod";

const time = (description: string) => z.string().meta({ format: "date-time", description });
const digest = (description: string) =>
  z
    .string()
    .regex(/^sha256:[0-9a-f]{64}$/)
    .describe(description);
const revision = (description: string) => z.string().min(1).describe(description);

const verified = z
  .object({
    mode: z.string().describe("What the Source demanded: HEAD, Tag or TagAndHEAD of git, provenance, or cosign"),
    signatures: z.array(
      z.object({
        object: z.string().describe("The signed object, such as commit 1f3a…, tag v1.2.0 or sha256:… of a manifest"),
        key: z.string().describe("Fingerprint of the key"),
        owner: z.string().optional().describe("The owner that the trusted key or the certificate names"),
      }),
    ),
    at: time("When it was verified"),
  })
  .describe("The signatures that counted; absent when the Source demanded none");

const included = z.object({
  source: z.string().min(1).describe("Name of the other Source, in the same namespace"),
  fromPath: z.string().describe("The folder of the other Source"),
  toPath: z.string().optional().describe("Where its files are; absent: in a folder with the name of the other Source"),
  revision: revision("The revision of the other Source"),
  digest: digest("The digest of its files"),
});

const artifact = z.object({
  revision: revision("The revision, such as main@sha1:4be8a903…"),
  digest: digest("Digest of the files, and not of the archive: docs/artifacts.md has the rule"),
  at: time("Since when the Source had it; absent when that is longer ago than revisions are kept").optional(),
  present: z.boolean().describe("Whether the Source has it now"),
  sizeBytes: z.int().min(0).describe("Bytes of the archive"),
  files: z.int().min(0).describe("Number of files"),
  storedAt: time("When the archive was stored last"),
  key: z
    .string()
    .regex(/^artifacts\/[0-9a-f]{64}\.tar\.gz$/)
    .describe("Key of the archive in the bucket"),
  origin: z
    .string()
    .optional()
    .describe(
      "Address of the upstream, or what a push gave as the origin of its content; absent when it is not recorded",
    ),
  verified: verified.optional(),
  included: z
    .array(included)
    .optional()
    .describe("The artifacts of other Sources that are a part of it, in the order of spec.include; absent without any"),
  title: z.string().describe("First line of the message of the commit, or what stands for it"),
  author: z.string(),
  committedAt: time("Time of the commit; absent when it is not recorded").optional(),
});

/** `GET /v1/sources/NAMESPACE/NAME/artifacts/REFERENCE` */
export const artifactAnswer = artifact
  .extend({
    url: z.url().describe("Reads the archive without further credentials"),
    urlExpiresAt: time("Until when the URL counts"),
  })
  .describe("One artifact of a Source, and a URL that reads it for five minutes.");

/** `GET /v1/sources/NAMESPACE/NAME/artifacts` */
export const artifactListAnswer = z
  .object({
    apiVersion: z.literal("starling.dev/v1alpha1"),
    kind: z.literal("ArtifactList"),
    metadata: z.object({
      continue: z.string().optional().describe("Give it as ?continue= for the next page; absent on the last one"),
    }),
    items: z.array(artifact).describe("The newest first"),
  })
  .describe("A page of the artifacts that a Source had; with ?reference= the one that the reference names.");
