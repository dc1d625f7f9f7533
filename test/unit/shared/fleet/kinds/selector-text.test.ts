import { describe, expect, test } from "vitest";
import { matchesSelector } from "#shared/fleet/kinds/cluster-selection.ts";
import { parseSelectorText } from "#shared/fleet/kinds/selector-text.ts";

const labels = { env: "prod", ring: "canary", tier: "" };

describe("label selectors as text", () => {
  test.each([
    ["env=prod", true],
    ["env==prod", true],
    ["env=dev", false],
    ["env!=dev", true],
    ["env!=prod", false],
    ["region!=eu", true],
    ["ring in (canary, early)", true],
    ["ring in (early)", false],
    ["ring notin (early)", true],
    ["region notin (eu)", true],
    ["ring", true],
    ["region", false],
    ["!region", true],
    ["! ring", false],
    ["tier=", true],
    ["env=prod,ring in (a,canary),!region", true],
    ["env=prod,ring in (a,b)", false],
  ])("the selector %s matches: %s", (text, matches) => {
    const parsed = parseSelectorText(text);
    if (!parsed.ok) throw new Error(parsed.message);
    expect(matchesSelector(parsed.selector, labels)).toBe(matches);
  });

  test.each(["", "a b", "a=b=c", "in (a)", "ring in canary", "env=prod,"])("the selector %j is refused", (text) => {
    expect(parseSelectorText(text)).toMatchObject({ ok: false });
  });

  test.each([
    ["ring='canary'", "a value of ring must be a Kubernetes label value", `(got "'canary'")`],
    ['"ring"="canary"', "key must be a Kubernetes label key", '(got "\\"ring\\"")'],
    ["ring in (canary,'early')", "a value of ring must be", `(got "'early'")`],
    ["ring!='canary'", "a value of ring must be", `(got "'canary'")`],
    ["ring notin (a b)", "a value of ring must be", '(got "a b")'],
    ["'ring'", "key must be", `(got "'ring'")`],
    ["env=prod,!ring/", "key must be", '(got "ring/")'],
  ])("the selector %s is refused, because no label can have it", (text, rule, got) => {
    const parsed = parseSelectorText(text);
    if (parsed.ok) throw new Error("it was taken");
    expect(parsed.message).toContain(rule);
    expect(parsed.message).toContain(got);
  });
});
