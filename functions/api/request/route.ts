/**
 * Finds the answer to a request with a router of hono. The rest of hono stays out: it takes a `Request`, whose URL removes
 * `.` and `..` from the path, and it accepts a path that is not percent-encoded UTF-8.
 */
import { TrieRouter } from "hono/router/trie-router";
import type { HttpRequest } from "#functions/api/request/http-event.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { type ApiRoute, pathChoices } from "#shared/fleet/api/api-routes.ts";

export type PathParams = Readonly<Record<string, string>>;

export interface Call<Ports> {
  readonly ports: Ports;
  readonly request: HttpRequest;
  readonly params: PathParams;
}

type Answer<Ports> = (call: Call<Ports>) => Promise<unknown>;

/** The function that answers each route. */
export type Answers<Ports, Asked extends ApiRoute = ApiRoute> = {
  readonly [Route in Asked]: Answer<Ports>;
};

const namePattern = "[a-z0-9][-a-z0-9.]{0,127}";
/** The name of an object. The name of a Sync of a group has a dot. */
export const pathName = new RegExp(`^${namePattern}$`);

/** The texts that a segment takes, by its name in the route. A segment that is not listed takes any text. */
const segments: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(pathChoices).map(([name, words]) => [name, `(?:${words.join("|")})`])),
  number: "(?:[1-9]\\d{0,7}|newest)",
  namespace: "[a-z0-9][-a-z0-9]{0,62}",
  name: namePattern,
};

/**
 * @returns what answers one request. It throws StarlingError `NotFound`, `MethodNotAllowed`, and whatever the route
 * refuses.
 */
export function routerOf<Ports>(
  answers: Partial<Answers<Ports>>,
): (ports: Ports, request: HttpRequest) => Promise<unknown> {
  const router = new TrieRouter<{ readonly method: string; readonly answer: Answer<Ports> }>();
  for (const [route, answer] of Object.entries(answers)) {
    const [method = "", pattern = ""] = route.split(" ");
    router.add("ALL", withPatterns(pattern), { method, answer });
  }
  return async (ports, request) => {
    // A segment may hold "/" when it is decoded, so the router sees the encoded path.
    const [found] = router.match("ALL", `/${request.path.map(encodeURIComponent).join("/")}`);
    const matched = found.find(([{ method }]) => method === request.method);
    if (matched !== undefined) {
      const [{ answer }, params] = matched;
      return answer({ ports, request, params: decodedParams(params as PathParams) });
    }
    const path = excerpt(`/${request.path.join("/")}`, 200);
    if (found.length > 0) throw refusal("MethodNotAllowed", `${request.method} is not possible on ${path}`);
    throw refusal("NotFound", `there is no ${path}`);
  };
}

/** `/v1/clusters/:name` with the texts that `:name` takes, as hono writes them. */
function withPatterns(pattern: string): string {
  return pattern.replaceAll(/:(\w+)/g, (segment, name: string) => {
    const texts = segments[name];
    return texts === undefined ? segment : `${segment}{${texts}}`;
  });
}

function decodedParams(params: PathParams): PathParams {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, decodeURIComponent(value)]));
}

/** @throws Error when the route has no such segment. */
export function part(params: PathParams, name: string): string {
  const value = params[name];
  if (value === undefined) throw new Error(`the route has no :${name}`);
  return value;
}
