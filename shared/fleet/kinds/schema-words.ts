/** The schema's own messages, in the words of people who write documents; messages that a schema sets stay. */
import { counted } from "#shared/base/counted.ts";

const things: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list such as [a, b]",
  object: "a map of fields",
  record: "a map of fields",
};

type Found = RegExpExecArray;

const known: readonly (readonly [RegExp, (found: Found) => string])[] = [
  [
    /^Invalid input: expected (\w+), received (\w+)$/,
    ([, desired = "", received = ""]) => {
      const thing = things[desired] ?? desired;
      if (received === "undefined") return thing;
      const isPlain = received === "number" || received === "boolean";
      return `must be ${thing}${desired === "string" && isPlain ? ": put it in quotes" : ""}`;
    },
  ],
  [
    /^Too (small|big): expected array to have [<>]=?(\d+) items?$/,
    ([, way, bound = ""]) =>
      `must have at ${mostOrLeast(way)} ${counted(Number(bound), "item")}` +
      (way === "small" && bound === "1" ? ": write one, or leave the field out" : ""),
  ],
  [
    /^Too (small|big): expected string to have [<>]=?(\d+) characters?$/,
    ([, way, bound = ""]) => `must have at ${mostOrLeast(way)} ${counted(Number(bound), "character")}`,
  ],
  [
    /^Too (small|big): expected (?:number|int) to be [<>]=(-?\d+)$/,
    ([, way, bound = ""]) => `must be at ${mostOrLeast(way)} ${bound}`,
  ],
  [/^Invalid (?:option|input): expected (?:one of )?(".*)$/, ([, words = ""]) => `must be ${wordsOf(words)}`],
  [/^Invalid discriminator value\. Expected ('.*)$/, ([, words = ""]) => `must be ${wordsOf(words)}`],
];

function mostOrLeast(way: string | undefined): string {
  return way === "big" ? "most" : "least";
}

function wordsOf(text: string): string {
  const words = [...text.matchAll(/["']([^"']*)["']/g)].map(([, word = ""]) => word);
  return words.length === 1 ? `${words[0]}` : `one of ${words.join(", ")}`;
}

export function schemaWords(message: string): string {
  for (const [pattern, words] of known) {
    const found = pattern.exec(message);
    if (found !== null) return words(found);
  }
  return message;
}
