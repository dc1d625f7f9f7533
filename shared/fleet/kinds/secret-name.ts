/**
 * The name of a secret of Secrets Manager in a document. It occurs in commands and messages, where a line end would
 * hide the rest.
 */
import { boundedText } from "#shared/base/bounded.ts";
import { hiddenValue } from "#shared/base/hidden-value.ts";

const allowed = /^[\w/+=.@:-]+$/;

/** A name, or an ARN. */
export const secretName = boundedText(512, "the name of a secret in AWS Secrets Manager")
  .meta({ pattern: allowed.source })
  .superRefine((text, context) => {
    if (allowed.test(text)) return;
    const message = `holds ${oddPartOf(text)}; the name or ARN of a secret has letters, digits and the characters /_+=.@:- only`;
    // The value may be the secret itself.
    context.addIssue({ code: "custom", message, params: hiddenValue });
  });

function oddPartOf(text: string): string {
  if (text === "") return "nothing";
  if (/[\r\n]/.test(text)) return "a line end";
  return text.includes(" ") ? "a space" : "another character";
}
