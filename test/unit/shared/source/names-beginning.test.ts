import { RE2JS } from "re2js";
import { describe, expect, test } from "vitest";
import { createRandom } from "#local/base/random.ts";
import { parseLinearRegex } from "#shared/source/linear-regex.ts";
import { namesBeginning } from "#shared/source/names-beginning.ts";

const owner = { keys: [""], ends: "/" };
const sub = { keys: ["repo:", "repository_owner:"], ends: "/:" };

describe("expressions that name each owner", () => {
  test.each([
    "acme/shop",
    "acme/.*",
    "acme",
    "^acme/.*$",
    "\\Aacme/.*\\z",
    "(acme|corp)/.*",
    "(?:acme|corp)/(shop|[a-z]+)",
    "acme/shop|corp/.*|team1/.+",
    "(team1|team2|team3)/.*",
    "(?P<who>acme)/.*",
    "(?i)ACME/.*",
    "(?i:acks)/.*",
    "acme(/.*)?",
    "acme[/].*",
    "acme\\.io/.*",
    "ac\\-me/.*",
    "\\Qacme\\E/.*",
    "(acme|acme-corp)/.*",
    "acme{1}/.*",
    "a/.*",
    "(acme/)+shop",
  ])("%s names its owners", (pattern) => {
    expect(namesBeginning(pattern, owner)).toBe(true);
  });

  test.each([
    "repo:acme/.*",
    "repo:(acme|corp)/.*",
    "(repo:acme/.*|repository_owner:corp(:.*)?)",
    "repo:acme@1/shop@2:.*",
  ])("%s names its owners behind a key", (pattern) => {
    expect(namesBeginning(pattern, sub)).toBe(true);
  });
});

describe("expressions that fit an owner whom they do not name", () => {
  test.each([
    ".*/shop",
    ".*",
    ".+/.+",
    "[^/]+/shop",
    "(acme|.*)/shop",
    "(acme|corp|[a-z]+)/shop",
    "acme/.*|.*/shop",
    "acme.*",
    "acme.*/shop",
    "acme.shop",
    "acme.io/shop",
    "acme[^:]shop",
    "acme?/shop",
    "acme*/shop",
    "acme+/shop",
    "(acme)?.*/shop",
    "(acme|)/shop",
    "(acme/)?evil.*",
    "(acme/)*.*",
    "/shop",
    "",
    "team[0-9]/shop",
    "team\\d/shop",
    "[abc]/shop",
    "[a|b]/shop",
    "[a-c]/.*",
    "[\\w-]+/shop",
    "\\w+/shop",
    "\\pL+/shop",
    "[[:alpha:]]+/shop",
    "acme\\w/shop",
    "\\Qacme\\E.*/shop",
    "\\Q.*\\E|.*/shop",
    "acme{1,2}/shop",
    "(?s)acme.",
    "(?i)ac.e/shop",
    "acme\\x2e*/shop",
    "ac(me|.)/shop",
    "(?:acme|(?:corp|(?:evil|x?.*)))/shop",
    "[/a]cme/.*",
    "(shop",
  ])("%s does not name its owners", (pattern) => {
    expect(namesBeginning(pattern, owner)).toBe(false);
  });

  test.each([
    "repo:.*",
    "repo:acme.*",
    "repo:[^/]+/shop:.*",
    ".*:ref:refs/heads/main",
    "(repo|environment):acme/.*",
    "environment:acme/.*",
    "repository_owner:acme.*",
    "acme/.*",
    "repo:/shop",
    "(repo:acme/.*)?.*",
    ".*repo:acme/.*",
  ])("%s does not name its owners behind a key", (pattern) => {
    expect(namesBeginning(pattern, sub)).toBe(false);
  });

  test("a name that only the end of the text ends may not go on", () => {
    const whole = { keys: [""], ends: "" };
    expect(namesBeginning("acme|corp", whole)).toBe(true);
    expect(namesBeginning("acme/.*", whole)).toBe(false);
    expect(namesBeginning("123456", whole)).toBe(true);
    expect(namesBeginning("\\d+", whole)).toBe(false);
  });

  test("a large expression is over in few steps", () => {
    const words = Array.from({ length: 120 }, (_, index) => `a${index}`).join("|");
    expect(namesBeginning(`(${words})/.*`, owner)).toBe(true);
    expect(namesBeginning(`(a|b|c|d|e){40}/.*`, owner)).toBe(false);
  });
});

/** Random expressions out of the pieces that people write. */
function randomPattern(random: () => number, depth = 3): string {
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)] as Item;
  const piece = (): string => {
    if (depth > 0 && random() < 0.35) {
      const inner = Array.from({ length: 1 + Math.floor(random() * 3) }, () => randomPattern(random, depth - 1));
      return `${pick(["(", "(?:", "(?i:"])}${inner.join("|")})${pick(["", "", "?", "*", "+"])}`;
    }
    return pick([
      "a",
      "b",
      "ab",
      "/",
      "/",
      ".",
      "[ab]",
      "[a/]",
      "[^a]",
      "\\w",
      "\\.",
      "a?",
      "b*",
      "^",
      "$",
      "\\Qa\\E",
      ":",
    ]);
  };
  return Array.from({ length: 1 + Math.floor(random() * 3) }, piece).join("");
}

test("no text that an accepted expression matches begins with an owner that the expression does not contain", () => {
  const seed = Date.now() % 100_000;
  const numbers = createRandom(seed);
  const random = () => numbers.integer(0, 2 ** 31 - 1) / 2 ** 31;
  const letters = ["a", "b", "A", "/", ".", "x", ":"];
  const texts = [""];
  for (let length = 0; length < 4; length++)
    texts.push(...texts.filter((text) => text.length === length).flatMap((text) => letters.map((each) => text + each)));
  let accepted = 0;
  for (let count = 0; count < 3000; count++) {
    const pattern = randomPattern(random);
    const fits = parseLinearRegex(pattern, { isWhole: true });
    if (typeof fits === "string" || !namesBeginning(pattern, owner)) continue;
    accepted++;
    const owners = new Set(texts.filter(fits).map((text) => (text.split("/")[0] ?? "").toLowerCase()));
    const plain = pattern.toLowerCase().replaceAll("\\q", "").replaceAll("\\e", "").replaceAll("\\.", ".");
    for (const one of owners) {
      const isNamed = one !== "" && plain.includes(one);
      expect(isNamed, `seed ${seed}: ${pattern} fits the owner ${one}`).toBe(true);
    }
  }
  expect(accepted, `seed ${seed}`).toBeGreaterThan(30);
});

test("the numbers of re2js's instructions are those that this file reads", () => {
  const { inst } = RE2JS.compile("a(b|c1|d2)?[x-z]$.(?s:.)").re2().prog as {
    inst: { op: number; toString(): string }[];
  };
  const named = new Map(inst.map((each) => [each.op, each.toString().split(" ")[0]]));
  expect(Object.fromEntries(named)).toMatchObject({
    1: "alt",
    3: "cap",
    4: "empty",
    5: "fail",
    6: "match",
    8: "rune",
    9: "rune1",
    10: "any",
    11: "anynotnl",
  });
});
