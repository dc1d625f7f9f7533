/** A table of routes, and how a request finds its own. */
import type { HttpRequest } from "#functions/api/http-event.ts";
import { matchPath, type PathParams } from "#functions/api/match-path.ts";
import { refusal } from "#functions/api/refusal.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import type { ApiRoute } from "#shared/fleet/api/api-routes.ts";

export interface Call<Ports> {
  readonly ports: Ports;
  readonly request: HttpRequest;
  readonly params: PathParams;
}

/** What each route is answered with. */
export type Answers<Ports, Asked extends ApiRoute = ApiRoute> = {
  readonly [Route in Asked]: (call: Call<Ports>) => Promise<unknown>;
};

/** @throws StarlingError `NotFound`, `MethodNotAllowed`, and whatever the route refuses. */
export async function answerBy<Ports>(
  answers: Partial<Answers<Ports>>,
  ports: Ports,
  request: HttpRequest,
): Promise<unknown> {
  let otherMethod = false;
  for (const [route, answer] of Object.entries(answers)) {
    const [method, pattern = ""] = route.split(" ");
    const params = matchPath(pattern, request.path);
    if (params === undefined) continue;
    if (method === request.method) return answer({ ports, request, params });
    otherMethod = true;
  }
  const path = excerpt(`/${request.path.join("/")}`, 200);
  if (otherMethod) throw refusal("MethodNotAllowed", `${request.method} is not possible on ${path}`);
  throw refusal("NotFound", `there is no ${path}`);
}
