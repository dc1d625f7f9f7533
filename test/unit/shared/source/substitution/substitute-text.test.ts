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

describe("I03: substitution in YAML text makes numbers and booleans, and substitution in texts keeps texts", () => {
  test.each([
    ["123", 123],
    ["true", true],
    ["yes", true],
    ["004", 4],
    ["1e3", 1000],
    ["", null],
    ["12:30:45", "12:30:45"],
    ["{a: 1}", { a: 1 }],
  ])("I03: the value %j becomes %j in YAML text", (v, value) => {
    expect(asText({ v: "${v}" }, { v })).toEqual({ v: value });
    expect(substituteObject({ v: "${v}" }, { variables: { v }, room: room() }, refuse)).toEqual({ v });
  });

  test("I03: quotes around a variable keep it a text", () => {
    expect(asText({ v: "${q}${v}${q}" }, { v: "123", q: '"' })).toEqual({ v: "123" });
  });
});

describe("variables in the YAML text of an object", () => {
  test.each<[string, JsonObject, Record<string, string>, unknown]>([
    ["within others", { v: "a ${v}: b", w: "- ${v}" }, { v: "1" }, { v: "a 1: b", w: "- 1" }],
    ["in keys, too", { data: { "${v}": "x" } }, { v: "k" }, { data: { k: "x" } }],
    ["on several lines", { v: "run ${v}\n  $$x ${v}\n" }, { v: "1\n2" }, { v: "run 12\n  $x 12\n" }],
    ["where lines end as on other systems", { m: { a: "${v}" } }, { v: "a\r\nb\r  c" }, { m: { a: "ab  c" } }],
    ["in lists of maps", { l: [{ a: "${v}", b: ["${v}"] }, []] }, { v: "1" }, { l: [{ a: 1, b: [1] }, []] }],
    ["with expressions that Flux reads as defaults", { v: "${z:?no} ${z:+n}" }, { v: "" }, { v: "no n" }],
    [
      "in an object with Flux's mark",
      { metadata: { labels: { "kustomize.toolkit.fluxcd.io/substitute": "disabled" } }, v: "${z}" },
      { v: "1" },
      undefined,
    ],
    ["without any variable", { v: "${z} $$" }, {}, undefined],
  ])("variables are replaced %s", (_legend, object, variables, expected) => {
    expect(asText(object, variables)).toEqual(expected ?? object);
  });

  test.each([
    ["is not set", { v: "${z}" }, "is not set"],
    ["breaks the line that it is on", { v: "it's ${v}: x" }, "is not YAML any more"],
    ["ends the object", { "${v}": "x" }, "is not YAML any more"],
  ])("a variable that %s is refused, without its value in the message", (_legend, object, message) => {
    const variables = { v: "'secret: [" };
    expect(() => asText(object, variables)).toThrow(message);
    expect(() => asText(object, variables)).not.toThrow("secret");
  });
});

test.each(propertySeeds)(
  "an object is the same after writing and reading, whatever its texts contain (seed %i)",
  (seed) => {
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
  },
);
