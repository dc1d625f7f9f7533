import { boundedText } from "#shared/base/bounded.ts";

/** A path inside a Source, as users write it. Other code checks which expressions it may contain. */
export const sourcePath = boundedText(1024)
  .min(1)
  .refine((text) => !text.startsWith("/") && !text.split("/").includes(".."), 'must be a relative path without ".."');
