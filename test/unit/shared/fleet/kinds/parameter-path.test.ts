import { expect, test } from "vitest";
import { checkParameterPath, parameterPathOf, sharedParameterPath } from "#shared/fleet/kinds/parameter-path.ts";

const eks = { name: "Prod_1", accountId: "111122223333", region: "eu-west-1" };

test.each([
  ["/starling/clusters/{{ eks.name }}", "/starling/clusters/Prod_1", "/starling/clusters", false],
  ["/starling/{{eks.region}}/{{ eks.name }}/values", "/starling/eu-west-1/Prod_1/values", "/starling", false],
  ["/eks/cluster-{{ eks.name }}", "/eks/cluster-Prod_1", "/eks", false],
  ["/platform/defaults", "/platform/defaults", "/platform/defaults", true],
])("the parameter path %s yields %s, and is read through %s", (path, of, shared, isWhole) => {
  expect(checkParameterPath(path)).toBeUndefined();
  expect(parameterPathOf(path, eks)).toBe(of);
  expect(sharedParameterPath(path)).toEqual({ path: shared, isWhole });
});

test.each([
  ["starling/{{ eks.name }}", /is no path of Parameter Store; expected one such as \/starling\/clusters/],
  ["/starling/", /is no path/],
  ["/starling//x", /is no path/],
  ["/star ling/x", /is no path/],
  ["/starling/{{ eks.arn }}", /has an expression that Starling does not know/],
  ["/starling/{{ eks.name", /has an expression that Starling does not know/],
  ["/{{ eks.name }}", /begins with an expression, so that every parameter of the account would be read/],
  ["/{{ eks.name }}/starling", /begins with an expression/],
  ["/aws/reference", /begins with what AWS keeps for itself/],
  ["/SSM-x/{{ eks.name }}", /begins with what AWS keeps for itself/],
  [`/a${"/b".repeat(14)}`, /is longer than Parameter Store takes; expected at most 14 levels/],
])("the parameter path %s is refused", (path, problem) => {
  expect(checkParameterPath(path)).toMatch(problem);
});
