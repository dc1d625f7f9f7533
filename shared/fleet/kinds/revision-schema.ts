/** The revision at which a template stays: a text that means one revision of its Source. */
import { boundedText } from "#shared/base/bounded.ts";

/** Longer than a tag with the digest that it means. */
const mostCharacters = 256;

const meaning = "a template stays at one revision; to follow a branch or a range, set it in the ref of a Source";

export const revisionSchema = boundedText(mostCharacters)
  .min(1, "must be a commit, a tag, a version or a digest; leave it out to follow the Source")
  .refine((text) => !text.includes("{{"), `has an expression; ${meaning}`)
  .refine((text) => text === text.trim(), "has a space at its beginning or its end; remove it")
  .refine((text) => !/[<>=^~*|,\s]/.test(text), `is a range or a list of versions; ${meaning}`)
  .refine((text) => !text.startsWith("refs/tags/"), "must be the name of the tag alone, without refs/tags/")
  .refine((text) => !/^(HEAD|latest|refs\/.*)$/i.test(text), `may be another revision tomorrow; ${meaning}`)
  .refine(
    (text) => !/^(.*@)?(sha1:)?[0-9A-Fa-f]{40}$/.test(text) || !/[A-F]/.test(text.slice(-40)),
    "is a commit in capital letters; write its digits in lower case",
  )
  .refine(
    (text) => !/(^|@)sha1:/.test(text) || /^(.+@)?sha1:[0-9a-f]{40}$/.test(text),
    "has a commit that is not whole; write all of its 40 hexadecimal digits",
  )
  .refine(
    (text) => !/(^|@)sha256:/.test(text) || /^(.+@)?sha256:[0-9a-f]{64}$/.test(text),
    "has a digest that is not whole; write sha256: and all of its 64 hexadecimal digits in lower case",
  )
  .refine(
    (text) => /^[\w@][\w.+/@-]*(@sha(1|256):[0-9a-f]+)?$/.test(text) || /^sha(1|256):[0-9a-f]+$/.test(text),
    "must be a commit, a tag, a version or a digest, such as v1.4.2 or sha1: and 40 digits",
  );
