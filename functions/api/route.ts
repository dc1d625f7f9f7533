/** A table of routes, and how a request finds its own. */
import type { HttpRequest } from "#functions/api/http-event.ts";
import { matchPath, type PathParams } from "#functions/api/match-path.ts";
import { refusal } from "#functions/api/refusal.ts";
import { excerpt } from "#shared/base/excerpt.ts";

export interface Call<Ports> {
  readonly ports: Ports;
  readonly request: HttpRequest;
  readonly params: PathParams;
}

export interface Route<Ports> {
  readonly method: string;
  /** `:name` takes one part of the path; what it may be is in `match-path.ts`. */
  readonly path: string;
  readonly answer: (call: Call<Ports>) => Promise<unknown>;
}

/** What paths below a namespace begin with. */
export const ns = "/v1/namespaces/:namespace";

/** @throws StarlingError `NotFound`, `MethodNotAllowed`, and whatever the route refuses. */
export async function answerBy<Ports>(
  routes: readonly Route<Ports>[],
  ports: Ports,
  request: HttpRequest,
): Promise<unknown> {
  let otherMethod = false;
  for (const route of routes) {
    const params = matchPath(route.path, request.path);
    if (params === undefined) continue;
    if (route.method === request.method) return route.answer({ ports, request, params });
    otherMethod = true;
  }
  const path = excerpt(`/${request.path.join("/")}`, 200);
  if (otherMethod) throw refusal("MethodNotAllowed", `${request.method} is not possible on ${path}`);
  throw refusal("NotFound", `there is no ${path}`);
}
