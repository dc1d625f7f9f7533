import { trackUpdate, withManagedFields } from "#apiserver/apply/managed-fields.ts";
import type { Access } from "#apiserver/authorization/access.ts";
import { decide, type PolicyRule, rulesFor } from "#apiserver/authorization/rbac.ts";
import { issueToken, serviceAccountIssuer } from "#apiserver/authorization/service-account-tokens.ts";
import type { User } from "#apiserver/authorization/user.ts";
import { objectKey } from "#apiserver/cluster-store.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { tokenRequestKind } from "#apiserver/kinds/builtin-kinds.ts";
import type { Kind } from "#apiserver/kinds/kind.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { nameOf, resourceSubject, withMetadata } from "#apiserver/operations/object-meta.ts";
import { parseBody } from "#apiserver/operations/write-operations.ts";
import { fieldsContext, toServerObject, type WriteRequest, type Written } from "#apiserver/operations/write-request.ts";
import { badRequest, type FieldError, fieldErrors, invalid, notFound } from "#apiserver/status-error.ts";

type Review = (request: WriteRequest & { readonly user: User }, review: JsonObject) => JsonObject;

/** Kinds that the server answers and does not store, by `group/plural`. */
const reviews: Readonly<Record<string, Review>> = {
  "authorization.k8s.io/selfsubjectaccessreviews": (request, review) =>
    reviewAccess(request, review, { user: request.user, errors: [] }),
  "authorization.k8s.io/subjectaccessreviews": (request, review) => reviewAccess(request, review, subjectOf(review)),
  "authorization.k8s.io/localsubjectaccessreviews": (request, review) => {
    const { user, errors } = subjectOf(review);
    const namespace = stringAt(review, "spec", "resourceAttributes", "namespace") ?? "";
    const field = "spec.resourceAttributes.namespace";
    const wrong =
      namespace === request.namespace ? [] : [fieldErrors.invalid(field, namespace, "must match metadata.namespace")];
    return reviewAccess(request, review, { user, errors: [...errors, ...wrong] });
  },
  "authorization.k8s.io/selfsubjectrulesreviews": reviewRules,
  "authentication.k8s.io/selfsubjectreviews": ({ cluster, user }, review) => ({
    ...review,
    metadata: { creationTimestamp: cluster.now() },
    status: { userInfo: { ...user } },
  }),
};

export function isReview(kind: Kind): boolean {
  return reviews[`${kind.group}/${kind.plural}`] !== undefined;
}

/** POST of a review. The answer is in its status. @throws StatusError 400 or 422. */
export function createReview(request: WriteRequest & { readonly user: User }): Written {
  const review = reviews[`${request.kind.group}/${request.kind.plural}`];
  const body = decode(request);
  return { status: 201, object: review === undefined ? body : review(request, body) };
}

function decode(request: WriteRequest): JsonObject {
  return toServerObject(request, parseBody(request), "client");
}

function managed(request: WriteRequest, object: JsonObject): JsonObject {
  return withManagedFields(object, trackUpdate(undefined, object, fieldsContext(request)));
}

function unnamed(errors: readonly FieldError[]) {
  return invalid({ group: "authorization.k8s.io", kind: "", name: "" }, errors);
}

function subjectOf(review: JsonObject): { readonly user: User; readonly errors: readonly FieldError[] } {
  const username = stringAt(review, "spec", "user") ?? "";
  const groups = listAt(review, "spec", "groups").map(String);
  const nobody = username === "" && groups.length === 0;
  const detail = "at least one of user or group must be specified";
  return { user: { username, groups }, errors: nobody ? [fieldErrors.invalid("spec.user", "", detail)] : [] };
}

function attributeErrors(spec: Json | undefined): FieldError[] {
  const resource = valueAt(spec, "resourceAttributes");
  const path = valueAt(spec, "nonResourceAttributes");
  if (resource !== undefined && path !== undefined) {
    const printed = { Path: stringAt(path, "path") ?? "", Verb: stringAt(path, "verb") ?? "" };
    const detail = "cannot be specified in combination with resourceAttributes";
    return [fieldErrors.invalid("spec.nonResourceAttributes", printed, detail)];
  }
  if (resource !== undefined || path !== undefined) return [];
  const detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
  return [fieldErrors.invalid("spec.resourceAttributes", null, detail)];
}

function accessIn(spec: Json | undefined, user: User): Access {
  const path = valueAt(spec, "nonResourceAttributes");
  if (path !== undefined) return { user, verb: stringAt(path, "verb") ?? "", path: stringAt(path, "path") ?? "" };
  const text = (key: string) => stringAt(spec, "resourceAttributes", key) ?? "";
  const [group, resource, subresource] = [text("group"), text("resource"), text("subresource")];
  const [namespace, name] = [text("namespace"), text("name")];
  return { user, verb: text("verb"), path: "", resource: { group, resource, subresource, namespace, name } };
}

function reviewAccess(
  request: WriteRequest,
  review: JsonObject,
  subject: { readonly user: User; readonly errors: readonly FieldError[] },
): JsonObject {
  const errors = [...attributeErrors(review.spec), ...subject.errors];
  if (errors.length > 0) throw unnamed(errors);
  const { allowed, reason } = decide(request.cluster.store, accessIn(review.spec, subject.user));
  return { ...managed(request, review), status: { allowed, ...(reason === "" ? {} : { reason }) } };
}

function reviewRules({ cluster, user }: WriteRequest & { readonly user: User }, review: JsonObject): JsonObject {
  const namespace = stringAt(review, "spec", "namespace") ?? "";
  if (namespace === "") throw badRequest("no namespace on request");
  const rules = rulesFor(cluster.store, user, namespace);
  const shown = (rule: PolicyRule) =>
    Object.fromEntries(Object.entries(rule).filter(([, values]) => values.length > 0));
  const status = {
    resourceRules: rules.filter(({ resources }) => resources.length > 0).map(shown),
    nonResourceRules: rules.filter(({ nonResourceURLs }) => nonResourceURLs.length > 0).map(shown),
    incomplete: false,
  };
  return { ...review, metadata: {}, spec: {}, status };
}

const defaultExpirationSeconds = 3600;
const minExpirationSeconds = 600;

/** POST to `serviceaccounts/NAME/token` (TokenRequest). Without an audience, the token is for the API server. */
export function createToken(request: WriteRequest): Written {
  const { cluster, namespace, name } = request;
  const account = cluster.store.get("/serviceaccounts", objectKey(namespace, name));
  if (account === undefined) throw notFound(resourceSubject(request.kind, name));
  const asked = { ...request, kind: tokenRequestKind };
  const given = decode(asked);
  const seconds = valueAt(given, "spec", "expirationSeconds") ?? defaultExpirationSeconds;
  const audiences = listAt(given, "spec", "audiences").map(String);
  const named = nameOf(given);
  const errors: FieldError[] = [];
  if (named !== "" && named !== name) {
    errors.push(fieldErrors.invalid("metadata.name", named, "must match the service account name if specified"));
  }
  if (Number(seconds) < minExpirationSeconds) {
    const detail = "may not specify a duration less than 10 minutes";
    errors.push(fieldErrors.invalid("spec.expirationSeconds", seconds, detail));
  }
  const subject = { group: tokenRequestKind.group, kind: tokenRequestKind.kind, name: named === "" ? "" : name };
  if (errors.length > 0) throw invalid(subject, errors);
  const issuedAt = Math.floor(cluster.options.clock() / 1000);
  const expiresAt = issuedAt + Number(seconds);
  const spec = {
    audiences: audiences.length === 0 ? [serviceAccountIssuer] : audiences,
    expirationSeconds: seconds,
    boundObjectRef: null,
  };
  const token = issueToken(cluster, account, { audiences: spec.audiences, issuedAt, expiresAt });
  const expirationTimestamp = `${new Date(expiresAt * 1000).toISOString().slice(0, 19)}Z`;
  const complete = { ...given, spec: { ...(isJsonObject(given.spec) ? given.spec : {}), expirationSeconds: seconds } };
  const uid = stringAt(account, "metadata", "uid");
  const identified = withMetadata(managed(asked, complete), { name, namespace, uid, creationTimestamp: cluster.now() });
  return { status: 201, object: { ...identified, spec, status: { token, expirationTimestamp } } };
}
