/** Senders that prove themselves by a token of OpenID Connect, without a secret that both sides know. */
import * as z from "zod";
import { boundedMap, boundedText } from "#shared/base/bounded.ts";

/** These are verified for every token, so that a demand on them tells no sender from another. */
const verifiedClaims: ReadonlySet<string> = new Set(["iss", "aud", "exp", "nbf", "iat", "jti"]);

const audience = boundedText(500, "the audience that the sender asks its token for, such as starling").min(
  1,
  "must not be empty",
);

const claimName = boundedText(200).superRefine((name, context) => {
  if (verifiedClaims.has(name)) {
    context.addIssue({ code: "custom", message: "says nothing of the sender; name a claim that does, such as sub" });
  } else if (!/^[A-Za-z][\w.:/-]*$/.test(name)) {
    context.addIssue({
      code: "custom",
      message: "must be the name of a claim: letters, digits and _.:/- after a letter",
    });
  }
});

/** The demands on tokens of any issuer. */
export const tokenTrust = z.strictObject({
  /** As the tokens name it in `iss`. */
  issuer: boundedText(500, "the URL of the issuer, such as https://token.actions.githubusercontent.com"),
  audience,
  /** Regular expressions that must match the whole of a claim, by its name. */
  claims: boundedMap(claimName, boundedText(500).min(1, "must not be empty"), 20).refine(
    (claims) => Object.keys(claims).length > 0,
    "must name one claim that says who the sender is, such as sub: an issuer gives tokens to all its users",
  ),
});
export type TokenTrust = z.infer<typeof tokenTrust>;

/** The demands on tokens of Google. */
export const googleTrust = z.strictObject({
  audience,
  /** The address of the service account as which Pub/Sub pushes. */
  email: boundedText(300, "the address of the service account as which Pub/Sub pushes").regex(
    /^[^@\s]+@[^@\s]+$/,
    "must be the address of a service account, such as push@PROJECT.iam.gserviceaccount.com",
  ),
});
