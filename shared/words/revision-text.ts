import { shorten } from "#shared/words/shorten.ts";

const revisionWidth = 30;

/** A revision with a short commit id: `main@sha1:9f2c1ab`. */
export function revisionText(revision: string | undefined): string {
  if (revision === undefined || revision === "") return "-";
  return shorten(revision.replaceAll(/\b(sha\w+):([0-9a-f]{7})[0-9a-f]+/g, "$1:$2"), revisionWidth);
}
