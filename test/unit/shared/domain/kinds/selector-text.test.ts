import { describe, expect, it } from "vitest";
import { matchesSelector } from "#shared/domain/kinds/cluster-selection.ts";
import { parseSelectorText } from "#shared/domain/kinds/selector-text.ts";

const labels = { env: "prod", ring: "canary", tier: "" };

describe("label selectors as text", () => {
  it.each([
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
  ])("%s matches: %s", (text, matches) => {
    const parsed = parseSelectorText(text);
    if (!parsed.ok) throw new Error(parsed.message);
    expect(matchesSelector(parsed.selector, labels)).toBe(matches);
  });

  it.each(["", "a b", "a=b=c", "in (a)", "ring in canary", "env=prod,"])("refuses %j", (text) => {
    expect(parseSelectorText(text)).toMatchObject({ ok: false });
  });
});
