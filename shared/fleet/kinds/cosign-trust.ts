/** The keys or identities whose cosign signatures count for an artifact of a registry. */
import * as z from "zod";
import { boundedList, boundedText } from "#shared/base/bounded.ts";

const identity = z.strictObject({
  /** Regular expressions in RE2's syntax, each for the whole text. */
  issuer: boundedText(500).min(1, "must not be empty"),
  subject: boundedText(500).min(1, "must not be empty"),
});

export const cosignTrust = z
  .strictObject({
    /** Public keys; a signature of any of them counts. They are no secrets, and a change of them is a change of the spec. */
    keys: boundedList(boundedText(16_384).min(1, "must not be empty"), 20)
      .min(1, "must have at least one public key")
      .optional(),
    /** The signers that a certificate may name. */
    identities: boundedList(identity, 20).min(1, "must have at least one identity").optional(),
    /** JSON of the authorities that give certificates, keep the log and date signatures: `trusted_root.json`. */
    trustedRoot: boundedText(65_536).min(1, "must not be empty").optional(),
  })
  .refine(({ keys, identities }) => (keys === undefined) !== (identities === undefined), {
    message: "needs exactly one of keys or identities",
  })
  .refine(({ identities, trustedRoot }) => identities === undefined || trustedRoot !== undefined, {
    message: "the text of a trusted_root.json, because Starling asks no service on the internet whom to trust",
    path: ["trustedRoot"],
  })
  .refine(({ keys, trustedRoot }) => keys === undefined || trustedRoot === undefined, {
    message: "belongs to identities; keys need none",
    path: ["trustedRoot"],
  });
export type CosignTrust = z.infer<typeof cosignTrust>;
