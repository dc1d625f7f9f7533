import { isIP } from "node:net";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { isPort, portNameProblems, portRange } from "#apiserver/kinds/port-validation.ts";
import type { Strategy } from "#apiserver/kinds/strategy.ts";
import { annotationsOf, listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { labelRule, pathSegmentRule, subdomainRule } from "#apiserver/operations/object-meta.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

const { invalid, required, unsupported } = fieldErrors;
const pathTypes = ["Exact", "ImplementationSpecific", "Prefix"];
const forbiddenParts = ["//", "/./", "/../", "%2f", "%2F"];
const forbiddenEnds = ["/..", "/."];
const wildcard = /^\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const wildcardMessage =
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const classAnnotation = "kubernetes.io/ingress.class";

function wildcardRule(host: string): string | undefined {
  if (host.length > 253) return "must be no more than 253 characters";
  return wildcard.test(host) ? undefined : wildcardMessage;
}

/** Checks a host name, or a wildcard for all hosts of a domain. */
function hostErrors(host: string, field: string): FieldError[] {
  const problem = host.includes("*") ? wildcardRule(host) : subdomainRule(host);
  return problem === undefined ? [] : [invalid(field, host, problem)];
}

function ingressErrors(object: JsonObject): FieldError[] {
  const spec = valueAt(object, "spec");
  const rules = listAt(spec, "rules");
  const backend = valueAt(spec, "defaultBackend");
  const className = valueAt(spec, "ingressClassName");
  const classProblem = typeof className === "string" ? subdomainRule(className) : undefined;
  return [
    ...(backend === undefined && rules.length === 0
      ? [invalid("spec", null, "either `defaultBackend` or `rules` must be specified")]
      : []),
    ...(backend === undefined ? [] : backendErrors(backend, "spec.defaultBackend")),
    ...rules.flatMap((rule, index) => ruleErrors(rule, `spec.rules[${index}]`)),
    ...listAt(spec, "tls").flatMap((tls, index) => tlsErrors(tls, `spec.tls[${index}]`)),
    ...(classProblem === undefined ? [] : [invalid("spec.ingressClassName", className, classProblem)]),
  ];
}

function tlsErrors(tls: Json, at: string): FieldError[] {
  const secret = stringAt(tls, "secretName") ?? "";
  const problem = secret === "" ? undefined : subdomainRule(secret);
  return [
    ...listAt(tls, "hosts").flatMap((host, index) => hostErrors(String(host), `${at}.hosts[${index}]`)),
    ...(problem === undefined ? [] : [invalid(`${at}.secretName`, secret, problem)]),
  ];
}

function ruleErrors(rule: Json, at: string): FieldError[] {
  const host = stringAt(rule, "host") ?? "";
  const errors: FieldError[] = [];
  if (isIP(host) !== 0) errors.push(invalid(`${at}.host`, host, "must be a DNS name, not an IP address"));
  if (host !== "") errors.push(...hostErrors(host, `${at}.host`));
  if (valueAt(rule, "http") === undefined) return errors;
  const paths = listAt(rule, "http", "paths");
  if (paths.length === 0) errors.push(required(`${at}.http.paths`));
  return [...errors, ...paths.flatMap((path, index) => pathErrors(path, `${at}.http.paths[${index}]`))];
}

function pathErrors(rule: Json, at: string): FieldError[] {
  const type = stringAt(rule, "pathType");
  const path = stringAt(rule, "path") ?? "";
  const errors: FieldError[] = [];
  const refuse = (why: string) => errors.push(invalid(`${at}.path`, path, why));
  if (type === undefined) return [required(`${at}.pathType`, "pathType must be specified")];
  if (type === "Exact" || type === "Prefix") {
    if (!path.startsWith("/")) refuse("must be an absolute path");
    for (const part of forbiddenParts) if (path.includes(part)) refuse(`must not contain '${part}'`);
    for (const end of forbiddenEnds) if (path.endsWith(end)) refuse(`cannot end with '${end}'`);
  } else if (type !== "ImplementationSpecific") {
    errors.push(unsupported(`${at}.pathType`, type, pathTypes));
  } else if (path !== "" && !path.startsWith("/")) refuse("must be an absolute path");
  return [...errors, ...backendErrors(valueAt(rule, "backend"), `${at}.backend`)];
}

function backendErrors(backend: Json | undefined, at: string): FieldError[] {
  const service = valueAt(backend, "service");
  const resource = valueAt(backend, "resource");
  if (resource !== undefined && service !== undefined)
    return [invalid(at, "", "cannot set both resource and service backends")];
  if (resource !== undefined) return resourceErrors(resource, `${at}.resource`);
  if (!isJsonObject(service)) return [invalid(at, "", "resource or service backend is required")];
  const name = stringAt(service, "name") ?? "";
  const nameProblem = labelRule(name);
  return [
    ...(name === "" ? [required(`${at}.service.name`)] : []),
    ...(name !== "" && nameProblem !== undefined ? [invalid(`${at}.service.name`, name, nameProblem)] : []),
    ...servicePortErrors(service, at),
  ];
}

function servicePortErrors(service: JsonObject, at: string): FieldError[] {
  const name = stringAt(service, "port", "name") ?? "";
  const number = valueAt(service, "port", "number") ?? 0;
  if (name === "" && number === 0) return [required(at, "port name or number is required")];
  if (name !== "" && number !== 0) return [invalid(at, "", "cannot set both port name & port number")];
  if (name !== "") return portNameProblems(name).map((problem) => invalid(`${at}.service.port.name`, name, problem));
  return isPort(number) ? [] : [invalid(`${at}.service.port.number`, number, portRange)];
}

function resourceErrors(resource: Json, at: string): FieldError[] {
  const group = stringAt(resource, "apiGroup") ?? "";
  const problem = group === "" ? undefined : subdomainRule(group);
  return [
    ...(problem === undefined ? [] : [invalid(`${at}.apiGroup`, group, problem)]),
    ...["kind", "name"].flatMap((key) => {
      const value = stringAt(resource, key) ?? "";
      if (value === "") return [required(`${at}.${key}`)];
      const segment = pathSegmentRule(value);
      return segment === undefined ? [] : [invalid(`${at}.${key}`, value, segment)];
    }),
  ];
}

export const ingressStrategy: Strategy = {
  validate: ingressErrors,
  warn: (object, { live }) =>
    live === undefined &&
    annotationsOf(object)[classAnnotation] !== undefined &&
    valueAt(object, "spec", "ingressClassName") === undefined
      ? [`annotation ${JSON.stringify(classAnnotation)} is deprecated, please use 'spec.ingressClassName' instead`]
      : [],
};
