import { expect, test } from "vitest";
import { ApiFailure } from "#cli/session/api-client.ts";
import { missingRight } from "#shared/words/missing-right.ts";

test.each([
  ["GET", "/v1/clusters?limit=5", "GET /v1/clusters; the stack's ViewerPolicy allows it"],
  [
    "POST",
    "/v1/namespaces/n/syncgroups/g/contents",
    "POST /v1/namespaces/n/syncgroups/g/contents; the stack's ReaderPolicy allows it",
  ],
  ["POST", "/v1/apply", "POST /v1/apply; the stack's AdministratorPolicy allows it"],
  ["GET", "/v1/audit?id=push-1", "GET /v1/audit; the stack's AdministratorPolicy allows it"],
  ["DELETE", "/v1/freezes/all", "DELETE /v1/freezes/all; the stack's OperatorPolicy allows it"],
  ["POST", "/v1/clusters/c1/check", "POST /v1/clusters/c1/check; the stack's OperatorPolicy allows it"],
])("a refused %s %s names the least policy that allows it", (method, path, words) => {
  expect(missingRight(method, path)).toBe(`execute-api:Invoke is missing for ${words}`);
});

test("a refusal by the gateway names the missing right and a command to type next", () => {
  const asked = { method: "GET", path: "/v1/clusters", context: "prod" };
  const failure = new ApiFailure({ status: 403, body: { message: "Forbidden" } }, asked);
  expect(failure.message).toBe(`Forbidden (context prod): ${missingRight("GET", "/v1/clusters")}`);
  expect(failure).toMatchObject({ exit: "unknown", next: expect.stringContaining("starling doctor") });
});

test("a refusal by the API itself keeps the API's message", () => {
  const body = { code: "Forbidden", message: "the request is not signed by an IAM principal" };
  const failure = new ApiFailure({ status: 403, body }, { method: "GET", path: "/v1/clusters", context: "prod" });
  expect(failure.message).toBe(`${body.message} (context prod)`);
});

test("a path without a route at the gateway is reported as unknown to the installation", () => {
  const asked = { method: "GET", path: "/v1/audit?id=push-1", context: "prod" };
  const failure = new ApiFailure({ status: 404, body: { message: "Not Found" } }, asked);
  expect(failure.message).toBe(
    "there is no /v1/audit: the installation does not know this request; it may have another version than the command",
  );
});
