import { describe, expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";
import { KubeError } from "#shared/kube/kube-error.ts";

const request = { method: "PATCH", path: "/api/v1/namespaces/n/configmaps/a", secret: false };
const secretRequest = { ...request, path: "/api/v1/namespaces/n/secrets/s", secret: true };
const password = "hunter2-correct-horse";

describe("KubeError", () => {
  test("the message of an error is the server's, on one bounded line", () => {
    const error = new KubeError(request, {
      status: 422,
      reason: "Invalid",
      message: `a\n b ${"x".repeat(9000)}`,
      causes: [],
    });
    expect(error.message.startsWith("a b xxx")).toBe(true);
    expect(error.message.length).toBeLessThanOrEqual(800);
  });

  test("the message of an error without an answer names the request", () => {
    const error = new KubeError(request, { message: "socket hang up", code: "ECONNRESET", causes: [] });
    expect(error.message).toBe("PATCH /api/v1/namespaces/n/configmaps/a was not answered: socket hang up (ECONNRESET)");
    expect(error.verdict.outcomeUnknown).toBe(true);
  });

  test.each([
    [429, "TooManyRequests"],
    [503, "ServiceUnavailable"],
    [502, "Http502"],
    [undefined, "NoAnswer"],
  ])("the reason of an error with status %s and without a Status object is %s", (status, reason) => {
    const error = new KubeError(request, { message: "", causes: [], ...defined({ status }) });
    expect(error.reason).toBe(reason);
  });

  test("an error about a Secret does not repeat its values", () => {
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

  test("a refusal about a Secret still says who may not write it", () => {
    const message = 'secrets "s" is forbidden: User "x" cannot patch resource "secrets" in API group ""';
    const error = new KubeError(secretRequest, { status: 403, reason: "Forbidden", message, causes: [] });
    expect(error.message).toBe(message);
  });

  test("an error about a Secret withholds the message of a webhook", () => {
    const message = `admission webhook "w" denied the request: weak password ${password}`;
    const error = new KubeError(secretRequest, { status: 403, reason: "Forbidden", message, causes: [] });
    expect(error.message).not.toContain(password);
  });
});

const deploymentRequest = { method: "PATCH", path: "/apis/apps/v1/namespaces/shop/deployments/web", secret: false };

test("an object with two entries of one key is invalid, and the error names the field", () => {
  const field = '.spec.template.spec.containers[name="web"].env';
  const message = `failed to create typed patch object: ${field}: duplicate entries for key [name="A"]`;
  const error = new KubeError(deploymentRequest, { status: 500, reason: "InternalError", message, causes: [] });
  expect(error).toMatchObject({ class: "invalid", reason: "Invalid", verdict: { retryable: false } });
  expect(error.message).toContain(field);
});

test("any other internal error stays an error of the server", () => {
  const error = new KubeError(deploymentRequest, {
    status: 500,
    reason: "InternalError",
    message: "it broke",
    causes: [],
  });
  expect(error).toMatchObject({ class: "transient", reason: "InternalError" });
});
