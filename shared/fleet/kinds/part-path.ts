import { boundedText } from "#shared/base/bounded.ts";

/** A path in an artifact, as git writes it. */
export const partPath = boundedText(1024).regex(
  /^(\.|(?!\.\.?(\/|$))[^/\0]+(\/(?!\.\.?(\/|$))[^/\0]+)*)$/,
  'must be a relative path without "..", and without a / at its end, such as deploy/base, or "." for everything',
);
