import type { LambdaFunction } from "#local/aws/lambda/lambda-function.ts";

export interface HttpRoute {
  /** A route key as in API Gateway: `POST /hook/{provider}/{id}`, `ANY /v1/{proxy+}`, `$default`. */
  readonly routeKey: string;
  /**
   * `iam` requires a signed request. `none` accepts every caller, and the function gets the body as base64 of its raw
   * bytes.
   */
  readonly authorization: "iam" | "none";
  readonly lambda: Pick<LambdaFunction, "invoke">;
}

export interface RouteMatch {
  readonly route: HttpRoute;
  readonly pathParameters: Readonly<Record<string, string>>;
}

type Segment =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "parameter" | "greedy"; readonly name: string };

interface Pattern {
  readonly route: HttpRoute;
  readonly method: string;
  readonly segments: readonly Segment[];
}

/**
 * Chooses the route of a request as HTTP APIs do. Literal segments win over parameters, and parameters over greedy
 * ones. A method wins over `ANY`. `$default` is last
 * (docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-routes.html).
 */
export function createRouter(routes: readonly HttpRoute[]): (method: string, path: string) => RouteMatch | undefined {
  const fallback = routes.find(({ routeKey }) => routeKey === "$default");
  const patterns = routes
    .filter((route) => route !== fallback)
    .map(parseRoute)
    .sort((left, right) => (rank(left) < rank(right) ? -1 : 1));

  return (method, path) => {
    const segments = path.split("/").slice(1);
    for (const pattern of patterns) {
      if (pattern.method !== "ANY" && pattern.method !== method) continue;
      const pathParameters = matchSegments(pattern.segments, segments);
      if (pathParameters !== undefined) return { route: pattern.route, pathParameters };
    }
    return fallback === undefined ? undefined : { route: fallback, pathParameters: {} };
  };
}

function parseRoute(route: HttpRoute): Pattern {
  const [method = "", path = ""] = route.routeKey.split(" ");
  if (!/^[A-Z]+$/.test(method) || !path.startsWith("/")) {
    throw new Error(
      `Route key ${JSON.stringify(route.routeKey)} is not valid; write it like "POST /hook/{id}" or "$default"`,
    );
  }
  const segments = path
    .split("/")
    .slice(1)
    .map((text): Segment => {
      const name = /^\{([^}+]+)(\+?)\}$/.exec(text);
      if (name === null) return { kind: "literal", text };
      return { kind: name[2] === "+" ? "greedy" : "parameter", name: name[1] ?? "" };
    });
  return { route, method, segments };
}

const kindRank = { literal: "0", parameter: "1", greedy: "2" };

function rank({ method, segments }: Pattern): string {
  return `${segments.map(({ kind }) => kindRank[kind]).join("")}${method === "ANY" ? "4" : "3"}`;
}

function matchSegments(pattern: readonly Segment[], segments: readonly string[]): Record<string, string> | undefined {
  const parameters: Record<string, string> = {};
  for (const [index, expected] of pattern.entries()) {
    const found = segments[index];
    if (found === undefined) return undefined;
    if (expected.kind === "greedy") return { ...parameters, [expected.name]: segments.slice(index).join("/") };
    if (expected.kind === "literal" && expected.text !== found) return undefined;
    if (expected.kind === "parameter") parameters[expected.name] = found;
  }
  return pattern.length === segments.length ? parameters : undefined;
}
