import { expect, test } from "vitest";
import { createRouter } from "#local/aws/lambda/http-routes.ts";
import { lambdaFunction } from "#local/aws/lambda/lambda-function.ts";
import { sharedSandbox } from "#local/aws/lambda/sandbox.ts";

function router(...routeKeys: string[]) {
  return createRouter(
    routeKeys.map((routeKey) => ({
      routeKey,
      authorization: "none",
      lambda: lambdaFunction({
        functionName: "f",
        timeoutSeconds: 1,
        newSandbox: () => sharedSandbox(() => undefined),
      }),
    })),
  );
}

const route = router(
  "$default",
  "ANY /v1/{proxy+}",
  "GET /v1/{proxy+}",
  "GET /v1/{kind}",
  "GET /v1/syncs",
  "POST /hook/{provider}/{id}",
);

/** Method, path, the route that handles the request, and the parameters of the path. */
const cases: [string, string, string, Record<string, string>][] = [
  ["GET", "/v1/syncs", "GET /v1/syncs", {}],
  ["GET", "/v1/clusters", "GET /v1/{kind}", { kind: "clusters" }],
  ["GET", "/v1/clusters/a/b", "GET /v1/{proxy+}", { proxy: "clusters/a/b" }],
  ["PUT", "/v1/clusters", "ANY /v1/{proxy+}", { proxy: "clusters" }],
  ["POST", "/hook/github/1", "POST /hook/{provider}/{id}", { provider: "github", id: "1" }],
  ["POST", "/hook/github", "$default", {}],
  ["POST", "/hook/github/1/2", "$default", {}],
  ["GET", "/v1", "$default", {}],
  ["GET", "/", "$default", {}],
];
test.each(cases)("the request %s %s goes to the route %s", (method, path, routeKey, pathParameters) => {
  expect(route(method, path)).toMatchObject({ route: { routeKey }, pathParameters });
});

test("no route handles a request that matches none when there is no default route", () => {
  expect(router("GET /a")("GET", "/b")).toBeUndefined();
});

test.each(["/a", "get /a", "GET a", ""])("the route key %j is refused", (routeKey) => {
  expect(() => router(routeKey)).toThrow("is not valid; write it like");
});
