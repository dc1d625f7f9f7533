import { type Access, forbiddenAccess } from "#apiserver/authorization/access.ts";
import { decide, serviceAccountOf, serviceAccountUser } from "#apiserver/authorization/rbac.ts";
import type { User } from "#apiserver/authorization/user.ts";
import type { ClusterStore } from "#apiserver/cluster-store.ts";
import { badRequest, type StatusError } from "#apiserver/status-error.ts";

/** Header names in lower case, each with all its values. */
export type HeaderValues = Readonly<Record<string, readonly string[] | undefined>>;

const extraPrefix = "impersonate-extra-";

/** The user that the Impersonate headers name; undefined without such headers. @throws StatusError 400. */
function desiredUser(headers: HeaderValues): User | undefined {
  const username = headers["impersonate-user"]?.[0] ?? "";
  const uid = headers["impersonate-uid"]?.[0] ?? "";
  const groups = headers["impersonate-group"] ?? [];
  const extra = Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => name.startsWith(extraPrefix))
      .map(([name, values]) => [unescaped(name.slice(extraPrefix.length)), values ?? []]),
  );
  const hasExtra = Object.keys(extra).length > 0;
  if (username !== "") return { username, groups, ...(uid === "" ? {} : { uid }), ...(hasExtra ? { extra } : {}) };
  if (uid === "" && groups.length === 0 && !hasExtra) return undefined;
  const list = (values: readonly string[]) => `[]string{${values.map((value) => JSON.stringify(value)).join(", ")}}`;
  const shownGroups = groups.length === 0 ? "[]string(nil)" : list(groups);
  const members = Object.entries(extra).map(([key, values]) => `${JSON.stringify(key)}:${list(values)}`);
  const shownExtra = `map[string][]string${hasExtra ? `{${members.join(", ")}}` : "(nil)"}`;
  throw badRequest(
    `requested &user.DefaultInfo{Name:"", UID:${JSON.stringify(uid)}, Groups:${shownGroups}, Extra:${shownExtra}} without impersonating a user name`,
  );
}

function unescaped(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

/** One way to be allowed to impersonate (KEP-5284). The last mode is the verb `impersonate` of older versions. */
interface Mode {
  readonly verb: string;
  /** The API group of the resources users, groups, nodes and serviceaccounts. */
  readonly group: string;
  /** A second verb that the requestor needs for the action of the impersonated user. */
  readonly onVerb?: string;
  readonly applies: (desired: User) => boolean;
}

function nodeOf(username: string): string | undefined {
  return /^system:node:([a-z0-9][-a-z0-9.]*)$/.exec(username)?.[1];
}

function isOnlyName({ uid, groups, extra }: User): boolean {
  return uid === undefined && groups.length === 0 && extra === undefined;
}

function constrained(name: string, applies: Mode["applies"]): Mode {
  return { verb: `impersonate:${name}`, group: "authentication.k8s.io", onVerb: `impersonate-on:${name}:`, applies };
}

const modes: readonly Mode[] = [
  constrained("arbitrary-node", (desired) => isOnlyName(desired) && nodeOf(desired.username) !== undefined),
  constrained("serviceaccount", (desired) => isOnlyName(desired) && serviceAccountOf(desired.username) !== undefined),
  constrained(
    "user-info",
    ({ username, groups }) =>
      nodeOf(username) === undefined &&
      serviceAccountOf(username) === undefined &&
      !groups.includes("system:masters") &&
      !groups.includes(""),
  ),
  { verb: "impersonate", group: "", applies: () => true },
];

/** Every access that a mode requires of the requestor, in the order of the checks. */
function checks({ verb, group, onVerb }: Mode, access: Access, desired: User): Access[] {
  const { user } = access;
  const on = (
    resource: string,
    name: string,
    more: { readonly namespace?: string; readonly subresource?: string } = {},
  ) => ({
    user,
    verb,
    path: "",
    resource: {
      group: ["uids", "userextras"].includes(resource) ? "authentication.k8s.io" : group,
      resource,
      name,
      namespace: "",
      subresource: "",
      ...more,
    },
  });
  const account = serviceAccountOf(desired.username);
  const node = onVerb === undefined ? undefined : nodeOf(desired.username);
  let who = on("users", desired.username);
  if (account !== undefined) who = on("serviceaccounts", account.name, { namespace: account.namespace });
  if (node !== undefined) who = on("nodes", node);
  return [
    ...(onVerb === undefined ? [] : [{ ...access, verb: `${onVerb}${access.verb}` }]),
    who,
    ...(desired.uid === undefined ? [] : [on("uids", desired.uid)]),
    ...desired.groups.map((name) => on("groups", name)),
    ...Object.entries(desired.extra ?? {}).flatMap(([subresource, values]) =>
      values.map((name) => on("userextras", name, { subresource })),
    ),
  ];
}

/** The groups that belong to a user name when the headers name no groups. */
function groupsOf({ onVerb }: Mode, { username, groups }: User): readonly string[] {
  if (groups.length > 0) return groups;
  if (onVerb !== undefined && nodeOf(username) !== undefined) return ["system:nodes"];
  const account = serviceAccountOf(username);
  return account === undefined ? [] : serviceAccountUser(account.namespace, account.name).groups;
}

function complete(mode: Mode, desired: User): User {
  const groups = groupsOf(mode, desired);
  const anonymous = desired.username === "system:anonymous" || groups.includes("system:unauthenticated");
  const everybody = anonymous ? "system:unauthenticated" : "system:authenticated";
  return { ...desired, groups: groups.includes(everybody) ? groups : [...groups, everybody] };
}

/**
 * The effective user of a request. This is the user of its Impersonate headers, if a mode allows the requestor to
 * impersonate that user. Without such headers it is the requestor. @throws StatusError 400, or 403 of the first
 * applicable mode.
 */
export function impersonate(store: ClusterStore, access: Access, headers: HeaderValues): User {
  const desired = desiredUser(headers);
  if (desired === undefined) return access.user;
  let refusal: StatusError | undefined;
  for (const mode of modes.filter(({ applies }) => applies(desired))) {
    const refused = checks(mode, access, desired)
      .map((check) => ({ check, ...decide(store, check) }))
      .find(({ allowed }) => !allowed);
    if (refused === undefined) return complete(mode, desired);
    refusal ??= forbiddenAccess(refused.check, refused.reason);
  }
  throw refusal;
}
