// biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are what is tested
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "#shared/base/json.ts";
import { openYaml } from "#shared/source/substitution/open-yaml.ts";
import { substituteObject } from "#shared/source/substitution/substitute-object.ts";
import { substituteText } from "#shared/source/substitution/substitute-text.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

function refuse(_field: string, reason: string): never {
  throw new Error(reason);
}

const room = () => ({ left: 1_000_000 });
const asText = (object: JsonObject, variables: Readonly<Record<string, string>>) =>
  substituteText(object, { variables, room: room() }, refuse);

describe("I03: what looks like a number or a boolean is one in text, and a text where texts stay texts", () => {
  test.each([
    ["123", 123],
    ["true", true],
    ["yes", true],
    ["004", 4],
    ["1e3", 1000],
    ["", null],
    ["12:30:45", "12:30:45"],
    ["{a: 1}", { a: 1 }],
  ])("%j is %j", (v, value) => {
    expect(asText({ v: "${v}" }, { v })).toEqual({ v: value });
    expect(substituteObject({ v: "${v}" }, { variables: { v }, room: room() }, refuse)).toEqual({ v });
  });

  test("as upstream's way out has it, quotes make a text of it", () => {
    expect(asText({ v: "${q}${v}${q}" }, { v: "123", q: '"' })).toEqual({ v: "123" });
  });
});

describe("a text of which a part is replaced", () => {
  test.each<[string, JsonObject, Record<string, string>, unknown]>([
    ["within others", { v: "a ${v}: b", w: "- ${v}" }, { v: "1" }, { v: "a 1: b", w: "- 1" }],
    ["in keys, too", { data: { "${v}": "x" } }, { v: "k" }, { data: { k: "x" } }],
    ["on several lines", { v: "run ${v}\n  $$x ${v}\n" }, { v: "1\n2" }, { v: "run 12\n  $x 12\n" }],
    ["where lines end as on other systems", { m: { a: "${v}" } }, { v: "a\r\nb\r  c" }, { m: { a: "ab  c" } }],
    ["in lists of maps", { l: [{ a: "${v}", b: ["${v}"] }, []] }, { v: "1" }, { l: [{ a: 1, b: [1] }, []] }],
    ["with what Flux takes for a default", { v: "${z:?no} ${z:+n}" }, { v: "" }, { v: "no n" }],
    [
      "of an object that is marked",
      { metadata: { labels: { "kustomize.toolkit.fluxcd.io/substitute": "disabled" } }, v: "${z}" },
      { v: "1" },
      undefined,
    ],
    ["where nothing is set", { v: "${z} $$" }, {}, undefined],
  ])("%s", (_legend, object, variables, expected) => {
    expect(asText(object, variables)).toEqual(expected ?? object);
  });

  test.each([
    ["is not set", { v: "${z}" }, "is not set"],
    ["breaks the line that it is on", { v: "it's ${v}: x" }, "is not YAML any more"],
    ["ends the object", { "${v}": "x" }, "is not YAML any more"],
  ])("is refused where it %s, without the value", (_legend, object, message) => {
    const variables = { v: "'secret: [" };
    expect(() => asText(object, variables)).toThrow(message);
    expect(() => asText(object, variables)).not.toThrow("secret");
  });
});

test.each(propertySeeds)("an object is the same when it is read again, whatever its texts hold (seed %i)", (seed) => {
  const text = fc.oneof(
    fc.string({ maxLength: 12 }),
    fc
      .array(fc.constantFrom("$", "{", "}", " ", "\n", ":", "#", "-", "'", '"', "\\", "a", "é", "\t", "|", "?"), {
        maxLength: 12,
      })
      .map((parts) => parts.join("")),
  );
  const { object } = fc.letrec<{ object: JsonObject; value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      text,
      fc.boolean(),
      fc.constant(null),
      fc.integer(),
      fc.array(tie("value"), { maxLength: 3 }),
      tie("object"),
    ),
    object: fc
      .dictionary(
        text.filter((key) => key !== "__proto__" && key !== "<<"),
        tie("value"),
        { maxKeys: 4 },
      )
      .map((map) => ({ ...map, kind: "X" }) as JsonObject),
  }));
  fc.assert(
    fc.property(object, (value) => {
      expect(parseDocuments(openYaml(value), "x").map((document) => document.value)).toEqual([value]);
    }),
    { seed, numRuns: propertyRuns(1000) },
  );
});
