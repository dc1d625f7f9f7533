// biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are what is tested
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { expand, SubstitutionError } from "#shared/source/substitution/expand.ts";
import { propertyRuns, propertySeeds } from "#test/support/property-runs.ts";

interface Fixture {
  readonly variables: Readonly<Record<string, string>>;
  /** The input and the outcome (null if refused). Where Flux answers otherwise: its answer, and the reason for Starling's. */
  readonly rows: readonly (readonly [string, string | null, string?, string?])[];
}

const file = new URL("../../../../fixtures/substitution/expressions.json", import.meta.url);
const { variables, rows } = JSON.parse(readFileSync(file, "utf8")) as Fixture;

describe("I04: the vectors of envsubst", () => {
  const fluxs = rows.map(([text, outcome, flux = outcome]) => [text, flux] as const);

  test.each(fluxs.filter(([, outcome]) => outcome !== null && outcome !== "\\xc3"))(
    "the text %j becomes %j, the same as in Flux",
    (text, outcome) => {
      expect(expand(text, variables, "flux")).toBe(outcome);
    },
  );

  test.each(fluxs.flatMap(([text, outcome]) => (outcome === null || outcome === "\\xc3" ? [text] : [])))(
    "the text %j is refused, the same as in Flux",
    (text) => {
      expect(() => expand(text, variables, "flux")).toThrow(/^(\$\{|the expression at character \d+ )/);
    },
  );

  test("I05: a negative length is an error, and not a crash", () => {
    for (const dialect of ["flux", "starling"] as const)
      expect(() => expand("${a:0:-1}", variables, dialect)).toThrow(SubstitutionError);
  });
});

describe("the expansion of a text", () => {
  test.each(rows.flatMap(([text, outcome]) => (outcome === null ? [] : [[text, outcome]])))(
    "the text %j becomes %j",
    (text, outcome) => {
      expect(expand(text, variables)).toBe(outcome);
    },
  );

  test.each(rows.flatMap(([text, outcome]) => (outcome === null ? [text] : [])))("the text %j is refused", (text) => {
    expect(() => expand(text, variables)).toThrow(/^(\$\{|the expression at character \d+ )/);
  });

  test.each([
    [
      "${zz}",
      "${zz} is not set; set parameters.zz, give it a default as ${zz:=text}, or write $${zz} for that text itself",
    ],
    ["a ${b", "the expression at character 3 has no } after the name: the text ends there; write ${NAME}"],
    ["${}", "the expression at character 1 has no name of a variable after ${; write ${NAME}"],
    ["${a-def}", "the expression at character 1 has no } after the name; write ${NAME}"],
    ["${s:x}", "${s:...} needs one or two numbers, such as ${s:0:3}; write := for a default"],
    ["${s/a}", "${s/...} needs an old and a new text, such as ${s/old/new}"],
    ["${a:?no}", "${...:?...} has different meanings in a shell and in Flux; use := for a default"],
  ])("the refusal of %j says what is wrong and what to do: %s", (text, message) => {
    expect(() => expand(text, variables)).toThrow(message);
  });

  test("a refusal says nothing of the text around an expression, because it may be a secret", () => {
    for (const text of ["hunter2${zz}hunter2", "hunter2${a", "hunter2${a-hunter2}", "hunter2${s/hunter2}"])
      expect(() => expand(text, variables)).toThrow(/^(?!.*hunter2)/);
  });

  test("members that every JavaScript object has are not variables", () => {
    expect(() => expand("${constructor}", {})).toThrow("is not set");
    expect(expand("${toString:=text}", {})).toBe("text");
  });

  test("a default that is not needed is not expanded", () => {
    expect(expand("${a:=${zz}}", variables)).toBe("A");
    expect(() => expand("${empty:=${zz}}", variables)).toThrow("${zz} is not set");
    expect(() => expand("${a:=${zz}", variables)).toThrow("the text ends there");
  });

  test("nested expressions are limited", () => {
    expect(() => expand("${z:=".repeat(100_000), {})).toThrow(
      "has more than 20 nested expressions; write fewer defaults inside defaults",
    );
  });

  test.each([
    ["replacements in each other", `${"${D//e/".repeat(12)}${"${D}"}${"}".repeat(12)}`],
    ["one value many times", "${D}".repeat(2000)],
    ["defaults that repeat", `\${none:=${"${D}".repeat(2000)}}`],
  ])("the length of the result is limited: %s", (_legend, text) => {
    expect(() => expand(text, { D: "e".repeat(4096) })).toThrow(
      "expands to more than 2097152 characters; shorten the values, or replace less",
    );
  });

  test("a long text is trimmed in time", () => {
    const text = "a".repeat(200_000);
    for (const sign of ["#", "##", "%", "%%"]) expect(expand(`\${t${sign}*a*a*b*a*}`, { t: text })).toBe(text);
  });

  test.each([
    ["${p#/usr*}", "/local/bin"],
    ["${p##/usr*}", ""],
    ["${p%/*}", "/usr/local"],
    ["${p%%l*l*}", "/usr/"],
    ["${p#*o*a}", "l/bin"],
    ["${p%x}", "/usr/local/bin"],
    ["${p#/usr/local/bin}", ""],
    ["${p%n*n}", "/usr/local/bin"],
    ["${p##*l*/}", "bin"],
    ["${p#*l*l}", "/bin"],
    ["${p%l*i*n}", "/usr/loca"],
    ["${p%%c*}", "/usr/lo"],
    ["${p%%*}", ""],
    ["${p#*}", "/usr/local/bin"],
    ["${s^^}", "HELLO WORLD"],
    ["${s/#hello/bye}", "bye world"],
    ["${s/#world/bye}", "hello world"],
    ["${s//o/$&}", "hell$& w$&rld"],
    ["${s//o/${a}}", "hellA wArld"],
    ["${uni:9}", ""],
  ])("the text %j becomes %j, by Starling's own rules", (text, outcome) => {
    expect(expand(text, variables)).toBe(outcome);
  });

  test.each(propertySeeds)("a value is not expanded again after it was put in (seed %i)", (seed) => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "grapheme" }), (value, around) => {
        const quiet = around.replaceAll("$", "");
        expect(expand(`${quiet}\${v}${quiet}`, { v: value })).toBe(`${quiet}${value}${quiet}`);
        expect(expand("${none:=${v}}", { v: value })).toBe(value);
      }),
      { seed, numRuns: propertyRuns(300) },
    );
  });
});
