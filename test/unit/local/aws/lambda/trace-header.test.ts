import { describe, expect, test } from "vitest";
import { hopsOf, nextTrace } from "#local/aws/lambda/trace-header.ts";

function chain(names: readonly string[], first?: string): string {
  let header = first;
  for (const name of names) header = nextTrace(name, [header]);
  return header ?? "";
}

describe("the trace header of a chain of invocations", () => {
  test("a new trace header has the format of Lambda's", () => {
    expect(nextTrace("apply", [])).toMatch(
      /^Root=1-[0-9a-f]{8}-[0-9a-f]{24};Parent=[0-9a-f]{16};Sampled=0;Lineage=[0-9a-f]{8}:1$/,
    );
  });

  test("the trace header counts the calls of each function, and keeps its root", () => {
    const header = chain(["rollout", "render", "rollout", "apply", "rollout"]);
    expect([hopsOf(header, "rollout"), hopsOf(header, "render"), hopsOf(header, "resolve")]).toEqual([3, 1, 0]);
    const root = /Root=([^;]+)/.exec(header)?.[1];
    expect(nextTrace("report", [header])).toContain(`Root=${root};`);
  });

  test("the trace header of a batch continues the longest chain of each function", () => {
    const batch = [chain(["a", "a", "b"]), undefined, chain(["a", "b", "b"])];
    const header = nextTrace("c", batch);
    expect([hopsOf(header, "a"), hopsOf(header, "b"), hopsOf(header, "c")]).toEqual([2, 2, 1]);
  });

  test.each([undefined, "", "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1", "Lineage="])(
    "a trace header without a lineage counts no call: %j",
    (header) => {
      expect(hopsOf(header, "apply")).toBe(0);
      expect(hopsOf(nextTrace("apply", [header]), "apply")).toBe(1);
    },
  );
});
