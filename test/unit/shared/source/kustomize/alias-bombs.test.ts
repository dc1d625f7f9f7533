import { expect, test } from "vitest";
import { guardedPatch } from "#shared/source/kustomize/guarded-object.ts";
import { kustomizeMessage } from "#shared/source/kustomize/kustomize-message.ts";

const levels = "abcdefgh";
/** Each list has the one before it ten times: five million texts in some hundred characters. */
function bomb(depth: number): string {
  const lists = Array.from({ length: depth }, (_, level) => {
    const item = level === 0 ? "x" : `*${levels[level - 1]}`;
    return `${levels[level]}: &${levels[level]} [${Array(10).fill(item).join(", ")}]`;
  });
  return `${lists.join("\n")}\n`;
}

test("a patch whose aliases are too large is passed on unchanged, to be counted and refused later", () => {
  for (const depth of [6, 8]) {
    const patch = `odd: "\\u2028"\n${bomb(depth)}`;
    expect(guardedPatch(patch, "\ue000")).toBe(patch);
  }
  expect(guardedPatch('odd: "\\u2028"\na: &a [x]\nb: *a\n', "\ue000")).toBe('{"odd":"\ue0002028","a":["x"],"b":["x"]}');
});

test("values are searched once in each aliased part", () => {
  const inputs = { "kustomization.yaml": bomb(6), "a.yaml": `kind: ConfigMap\nmetadata: {name: web}\n${bomb(6)}` };
  const files = new Map(Object.entries(inputs).map(([path, text]) => [path, new TextEncoder().encode(text)]));
  expect(kustomizeMessage("no matches for Id ConfigMap.v1.[noGrp]/web.[noNs]: hunter2", files)).toBe(
    "no matches for Id ConfigMap.***.[noGrp]/web.[noNs]: ***",
  );
});
