import { expect, test } from "vitest";
import { checkNameTemplate, clusterNameOf } from "#shared/fleet/kinds/cluster-name.ts";

const eks = { name: "Prod_1", accountId: "111122223333", region: "eu-west-1" };

test.each([
  ["{{ eks.name }}", "prod-1"],
  ["{{eks.name}}-{{ eks.accountId }}-{{ eks.region }}", "prod-1-111122223333-eu-west-1"],
  ["only-{{ eks.accountId }}", "only-111122223333"],
])("the name template %s makes the name %s", (template, name) => {
  expect(checkNameTemplate(template)).toBeUndefined();
  expect(clusterNameOf(template, eks)).toEqual({ ok: true, name });
});

test.each([
  ["{{ eks.arn }}", /has an expression that Starling does not know; use \{\{ eks.name \}\}/],
  ["prod", /is the same for every cluster/],
  ["{{ eks.name }", /has an expression/],
  ["-{{ eks.name }}", /makes no name: it must be 1 to 63 characters/],
  ["{{ eks.name }}.prod", /makes no name/],
])("the name template %s is refused", (template, problem) => {
  expect(checkNameTemplate(template)).toMatch(problem);
});

test("a name that is too long is refused, because two cut names could be the same", () => {
  const long = { ...eks, name: "a".repeat(64) };
  const named = clusterNameOf("{{ eks.name }}", long);
  expect(named).toMatchObject({
    ok: false,
    message: expect.stringContaining("has 64 characters; a name has at most 63"),
  });
});
