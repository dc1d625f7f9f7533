import type { User } from "#apiserver/authorization/user.ts";
import { isWatch, type ResourcePath } from "#apiserver/resource-path.ts";
import { StatusError } from "#apiserver/status-error.ts";

/** What somebody wants to do with a resource. */
export interface ResourceAccess {
  readonly group: string;
  /** The plural, `*` for all. */
  readonly resource: string;
  /** "" for the object itself. */
  readonly subresource: string;
  /** "" at the cluster scope. */
  readonly namespace: string;
  /** "" where no object is named. */
  readonly name: string;
}

/** What somebody wants to do, for whoever decides whether they may (authorizer.Attributes). */
export interface Access {
  readonly user: User;
  readonly verb: string;
  /** What is accessed where it is no resource. */
  readonly path: string;
  readonly resource?: ResourceAccess;
}

interface AccessedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
}

/** The verb of a request to a resource, as roles name it. */
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

/** A collection narrowed to one name is an access to that name, so that `resourceNames` reach it. */
function selectedName(query: URLSearchParams): string {
  return /(?:^|,)metadata\.name==?([^,/%]+)(?:,|$)/.exec(query.get("fieldSelector") ?? "")?.[1] ?? "";
}

/** What a request wants to do; `target` is undefined where its path names no resource. */
export function accessOf(request: AccessedRequest, target: ResourcePath | undefined, user: User): Access {
  const { path } = request;
  if (target === undefined) return { user, verb: request.method.toLowerCase(), path };
  const verb = verbOf(request, target);
  const { group, plural, subresource } = target;
  // A Namespace counts as being in itself, so that a role in it may allow to read it.
  const namespace = target.namespace ?? (group === "" && plural === "namespaces" ? target.name : "");
  const name = collectionVerbs.includes(verb) ? selectedName(request.query) : target.name;
  return { user, verb, path, resource: { group, resource: plural, subresource, namespace, name } };
}

/** The refusal of an access, with the reason of whoever refused. */
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
