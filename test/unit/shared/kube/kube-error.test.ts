import { describe, expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

const request = { method: "PATCH", path: "/api/v1/namespaces/n/configmaps/a", secret: false };
const secretRequest = { ...request, path: "/api/v1/namespaces/n/secrets/s", secret: true };
const password = "hunter2-correct-horse";

describe("KubeError", () => {
  test("says what the server said, on one bounded line", () => {
    const error = new KubeError(request, {
      status: 422,
      reason: "Invalid",
      message: `a\n b ${"x".repeat(9000)}`,
      causes: [],
    });
    expect(error.message.startsWith("a b xxx")).toBe(true);
    expect(error.message.length).toBeLessThanOrEqual(800);
  });

  test("names the request when there was no answer", () => {
    const error = new KubeError(request, { message: "socket hang up", code: "ECONNRESET", causes: [] });
    expect(error.message).toBe("PATCH /api/v1/namespaces/n/configmaps/a was not answered: socket hang up (ECONNRESET)");
    expect(error.verdict.outcomeUnknown).toBe(true);
  });

  test.each([
    [429, "TooManyRequests"],
    [503, "ServiceUnavailable"],
    [502, "Http502"],
    [undefined, "NoAnswer"],
  ])("has a reason where %s comes without a Status: %s", (status, reason) => {
    const error = new KubeError(request, { message: "", causes: [], ...defined({ status }) });
    expect(error.reason).toBe(reason);
  });

  test("repeats nothing about a Secret", () => {
    const error = new KubeError(secretRequest, {
      status: 422,
      reason: "Invalid",
      message: `Secret "s" is invalid: data[k]: Invalid value: "${password}"`,
      causes: [{ reason: "FieldValueInvalid", field: "data[k]", message: `Invalid value: "${password}"` }],
    });
    expect(JSON.stringify([error.message, error.causes, String(error), error.stack])).not.toContain(password);
    expect(error.message).toContain("data[k]: FieldValueInvalid");
    expect(error.class).toBe("invalid");
  });

  test("still says who may not write a Secret", () => {
    const message = 'secrets "s" is forbidden: User "x" cannot patch resource "secrets" in API group ""';
    const error = new KubeError(secretRequest, { status: 403, reason: "Forbidden", message, causes: [] });
    expect(error.message).toBe(message);
  });

  test("withholds what a webhook said about a Secret", () => {
    const message = `admission webhook "w" denied the request: weak password ${password}`;
    const error = new KubeError(secretRequest, { status: 403, reason: "Forbidden", message, causes: [] });
    expect(error.message).not.toContain(password);
  });
});
