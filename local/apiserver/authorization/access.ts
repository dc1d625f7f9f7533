import type { User } from "#apiserver/authorization/user.ts";
import { isWatch, type ResourcePath } from "#apiserver/resource-path.ts";
import { StatusError } from "#apiserver/status-error.ts";

/** An access to a resource. */
export interface ResourceAccess {
  readonly group: string;
  /** The plural; `*` means all resources. */
  readonly resource: string;
  /** Empty for the object itself. */
  readonly subresource: string;
  /** Empty for cluster scope. */
  readonly namespace: string;
  /** Empty where the request names no object. */
  readonly name: string;
}

/** The access that a user asks for, as input for the authorizer (authorizer.Attributes). */
export interface Access {
  readonly user: User;
  readonly verb: string;
  /** The URL path of a request that is not for a resource. */
  readonly path: string;
  readonly resource?: ResourceAccess;
}

interface AccessedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
}

/** The RBAC verb of a request to a resource. */
function verbOf(request: AccessedRequest, { name }: ResourcePath): string {
  switch (request.method) {
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return name === "" ? "deletecollection" : "delete";
    default:
      if (name !== "") return "get";
      return isWatch(request) ? "watch" : "list";
  }
}

const collectionVerbs = ["list", "watch", "deletecollection"];

/** A list that selects one name counts as access to that name, so that `resourceNames` apply to it. */
function selectedName(query: URLSearchParams): string {
  return /(?:^|,)metadata\.name==?([^,/%]+)(?:,|$)/.exec(query.get("fieldSelector") ?? "")?.[1] ?? "";
}

/** The access that a request asks for. `target` is undefined where the path names no resource. */
export function accessOf(request: AccessedRequest, target: ResourcePath | undefined, user: User): Access {
  const { path } = request;
  if (target === undefined) return { user, verb: request.method.toLowerCase(), path };
  const verb = verbOf(request, target);
  const { group, plural, subresource } = target;
  // A Namespace counts as an object inside itself, so that a Role in it can allow a user to read it.
  const namespace = target.namespace ?? (group === "" && plural === "namespaces" ? target.name : "");
  const name = collectionVerbs.includes(verb) ? selectedName(request.query) : target.name;
  return { user, verb, path, resource: { group, resource: plural, subresource, namespace, name } };
}

/** The refusal of an access, with the authorizer's reason. */
export function forbiddenAccess({ user, verb, path, resource }: Access, reason: string): StatusError {
  const why = reason === "" ? "" : `: ${reason}`;
  const who = `User ${JSON.stringify(user.username)} cannot ${verb}`;
  if (resource === undefined) {
    const message = `forbidden: ${who} path ${JSON.stringify(path)}${why}`;
    return new StatusError(403, message, { reason: "Forbidden", details: {} });
  }
  const { group, subresource, namespace, name } = resource;
  const shown = group === "" ? resource.resource : `${resource.resource}.${group}`;
  const target = subresource === "" ? resource.resource : `${resource.resource}/${subresource}`;
  const where = namespace === "" ? "at the cluster scope" : `in the namespace ${JSON.stringify(namespace)}`;
  const message = `${shown}${name === "" ? "" : ` ${JSON.stringify(name)}`} is forbidden: ${who} resource ${JSON.stringify(target)} in API group ${JSON.stringify(group)} ${where}${why}`;
  return new StatusError(403, message, {
    reason: "Forbidden",
    details: { ...(name === "" ? {} : { name }), ...(group === "" ? {} : { group }), kind: resource.resource },
  });
}
