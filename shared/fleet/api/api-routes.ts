/** The routes of the API, in one table: the function answers by it, and the gateway has its routes from it. */

/** Prefix of paths below a namespace. */
export const ns = "/v1/namespaces/:namespace";

/** Method and path. `:name` takes one segment, and `pathChoices` lists the words that some segments take. */
export const apiRoutes = [
  "GET /v1/version",
  "GET /v1/whoami",
  "GET /v1/installation",
  "POST /v1/apply",
  "GET /v1/clusterdiscoveries",
  "GET /v1/clusterdiscoveries/:name",
  "DELETE /v1/clusterdiscoveries/:name",
  "GET /v1/clusterdiscoveries/:name/logs",
  "GET /v1/clustervalues",
  "GET /v1/clustervalues/:name",
  "DELETE /v1/clustervalues/:name",
  "GET /v1/clustervalues/:name/logs",
  "GET /v1/windows",
  "GET /v1/windows/:name",
  "DELETE /v1/windows/:name",
  "GET /v1/windows/:name/logs",
  "GET /v1/clusters",
  "GET /v1/clusters/:name",
  "DELETE /v1/clusters/:name",
  "POST /v1/clusters/:name/accept",
  "POST /v1/clusters/:name/recover",
  "POST /v1/clusters/:name/check",
  "GET /v1/clusters/:name/check",
  "POST /v1/clusters/:name/cordon",
  "POST /v1/clusters/:name/uncordon",
  "GET /v1/clusters/:name/syncs",
  "GET /v1/clusters/:name/objects",
  "GET /v1/clusters/:name/logs",
  "GET /v1/fleet",
  "GET /v1/events",
  "GET /v1/logs",
  "GET /v1/audit",
  "GET /v1/zones",
  "POST /v1/zones/:zone/check",
  "GET /v1/zones/:zone/check",
  "GET /v1/freezes",
  "POST /v1/freezes/:freeze",
  "DELETE /v1/freezes/:freeze",
  "GET /v1/sources/:namespace/:name/artifacts",
  "GET /v1/sources/:namespace/:name/artifacts/:reference",
  "GET /v1/:plural",
  `GET ${ns}/:plural`,
  `GET ${ns}/:plural/:name`,
  `DELETE ${ns}/:plural/:name`,
  `POST ${ns}/:plural/:name/:verb`,
  `GET ${ns}/:plural/:name/events`,
  `GET ${ns}/:plural/:name/logs`,
  `GET ${ns}/syncs/:name/objects`,
  `POST ${ns}/syncs/:name/prune`,
  `GET ${ns}/sources/:name/revisions`,
  `POST ${ns}/receivers/:name/trigger`,
  `POST ${ns}/sources/:name/contents`,
  `POST ${ns}/sources/:name/uploads`,
  `POST ${ns}/:owners/:name/:rolloutVerb`,
  `POST ${ns}/syncgroups/:name/approve-guard`,
  `GET ${ns}/:owners/:name/history`,
  `GET ${ns}/:owners/:name/syncs`,
  `GET ${ns}/:owners/:name/fleet`,
  `POST ${ns}/:owners/:name/contents`,
  `GET ${ns}/:owners/:name/rollout`,
  `GET ${ns}/:owners/:name/rollouts`,
  `GET ${ns}/:owners/:name/rollouts/:number`,
  `GET ${ns}/:owners/:name/rollouts/:number/targets`,
] as const;

export type ApiRoute = (typeof apiRoutes)[number];

/** The words that a segment takes, when it takes only some. */
export const pathChoices = {
  plural: ["sources", "receivers", "syncgroups", "syncs", "rollouts"],
  owners: ["syncgroups", "syncs"],
  verb: ["suspend", "resume", "reconcile", "refresh"],
  rolloutVerb: [
    ...(["hold", "release", "promote", "reject", "unreject", "retry", "skip", "approve", "rollback"] as const),
    ...(["rollback-deleting", "exempt", "unexempt"] as const),
  ],
} as const;

/**
 * The routes as API Gateway writes them: `POST /v1/namespaces/{namespace}/syncs/{name}/suspend`. A segment that takes only
 * some words becomes one route for each. So no two routes take one request, and a policy that names a word means the same
 * whether IAM is asked about the path of the request or about that of its route.
 */
export function gatewayRouteKeys(): readonly string[] {
  return apiRoutes.flatMap(spelledOut);
}

function spelledOut(route: string): readonly string[] {
  for (const [name, words] of Object.entries(pathChoices)) {
    const segment = new RegExp(`/:${name}(?=/|$)`);
    if (segment.test(route)) return words.flatMap((word) => spelledOut(route.replace(segment, `/${word}`)));
  }
  return [route.replaceAll(/:(\w+)/g, "{$1}")];
}
