import type { Cluster } from "#apiserver/cluster.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { portRange } from "#apiserver/kinds/port-validation.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { labelErrors } from "#apiserver/operations/object-meta.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

interface Context {
  readonly cluster: Cluster;
  readonly live: JsonObject | undefined;
}
type Draft = Record<string, Json>;

const serviceNetwork = "10.0.0.";
const serviceTypes = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const firstNodePort = 30_000;
const lastNodePort = 32_767;

function specOf(object: JsonObject | undefined): Draft {
  return isJsonObject(object?.spec) ? { ...(object.spec as Draft) } : {};
}

function others(context: Context): readonly JsonObject[] {
  return context.cluster.store.list("/services").filter((service) => service !== context.live);
}

function freeIp(context: Context): string {
  const taken = new Set(others(context).map((service) => stringAt(service, "spec", "clusterIP")));
  for (let third = 0; third < 256; third += 1) {
    for (let last = third === 0 ? 2 : 0; last < 255; last += 1) {
      const ip = third === 0 ? `${serviceNetwork}${last}` : `10.0.${third}.${last}`;
      if (!taken.has(ip)) return ip;
    }
  }
  throw new Error("no cluster IP is left in 10.0.0.0/16");
}

/**
 * Gives a Service its cluster IP and node ports, and keeps those that it has. Removes fields that its type does not
 * use.
 */
export function allocateService(object: JsonObject, context: Context): JsonObject {
  const spec = specOf(object);
  const before = specOf(context.live);
  if (spec.type === "ExternalName") {
    for (const key of ["clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]) delete spec[key];
    if (spec.clusterIP === before.clusterIP) delete spec.clusterIP;
    return { ...object, spec };
  }
  const previous = typeof before.clusterIP === "string" ? before.clusterIP : "";
  const given = typeof spec.clusterIP === "string" && spec.clusterIP !== "" ? spec.clusterIP : previous;
  const ip = given === "" ? freeIp(context) : given;
  spec.clusterIP = ip;
  spec.clusterIPs = [ip];
  const anyFamily = mayHaveAnyFamily(spec);
  spec.ipFamilies ??= anyFamily ? (before.ipFamilies ?? ["IPv4", "IPv6"]) : ["IPv4"];
  spec.ipFamilyPolicy ??= before.ipFamilyPolicy ?? (anyFamily ? "RequireDualStack" : "SingleStack");
  const external = spec.type === "NodePort" || spec.type === "LoadBalancer";
  if (!external) delete spec.externalTrafficPolicy;
  if (spec.type !== "LoadBalancer") delete spec.allocateLoadBalancerNodePorts;
  if (Array.isArray(spec.ports)) spec.ports = allocatePorts(spec.ports, { external, before, context });
  return { ...object, spec };
}

/**
 * A headless Service without a selector may have endpoints of any IP family (registry/core/service/storage,
 * initIPFamilyFields).
 */
function mayHaveAnyFamily(spec: JsonObject): boolean {
  return spec.clusterIP === "None" && Object.keys(selectorOf(spec)).length === 0;
}

function selectorOf(spec: JsonObject): Readonly<Record<string, string>> {
  return isJsonObject(spec.selector) ? (spec.selector as Readonly<Record<string, string>>) : {};
}

function portKey(port: Json): string {
  return `${String(valueAt(port, "port"))}/${stringAt(port, "protocol") ?? "TCP"}`;
}

function allocatePorts(
  ports: readonly Json[],
  how: { readonly external: boolean; readonly before: JsonObject; readonly context: Context },
): Json[] {
  const known = new Map(listAt(how.before, "ports").map((port) => [portKey(port), valueAt(port, "nodePort")]));
  const taken = new Set(
    others(how.context).flatMap((service) => listAt(service, "spec", "ports").map((port) => valueAt(port, "nodePort"))),
  );
  return ports.map((port) => {
    if (!isJsonObject(port)) return port;
    const { nodePort, ...rest } = port;
    const previous = known.get(portKey(port));
    if (!how.external) return nodePort === previous ? (rest as Draft) : port;
    if (nodePort !== undefined && nodePort !== 0) return port;
    let free = previous;
    for (let candidate = firstNodePort; free === undefined && candidate <= lastNodePort; candidate += 1) {
      if (!taken.has(candidate)) free = candidate;
    }
    taken.add(free);
    return { ...(rest as Draft), nodePort: free ?? 0 };
  });
}

/** The errors of a Service after `allocateService`, in the order of ValidateServiceUpdate. */
export function serviceErrors(object: JsonObject, context: Context): FieldError[] {
  const unfit = familyErrors(object);
  if (unfit.length > 0) return unfit;
  const ip = stringAt(object, "spec", "clusterIP") ?? "";
  const previous = stringAt(context.live, "spec", "clusterIP") ?? "";
  const named = stringAt(object, "spec", "type") === "ExternalName";
  const moved = !named && previous !== "" && ip !== "" && previous !== ip;
  const errors = [
    ...(moved ? [fieldErrors.invalid("spec.clusterIPs[0]", [ip], "may not change once set")] : []),
    ...typeErrors(object, ip),
    ...portErrors(object),
    ...labelErrors(selectorOf(specOf(object)), "spec.selector"),
  ];
  if (errors.length > 0 || ip === "" || ip === "None" || previous === ip) return errors;
  const problem = ipProblem(ip, context);
  return problem === undefined
    ? errors
    : [fieldErrors.invalid("spec.clusterIPs", [ip], `failed to allocate IP ${ip}: ${problem}`)];
}

/**
 * A Service without a selector gets two IP families. They become an error once the Service has a selector, because this
 * cluster has only IPv4.
 */
function familyErrors(object: JsonObject): FieldError[] {
  if (mayHaveAnyFamily(specOf(object)) || stringAt(object, "spec", "ipFamilyPolicy") !== "RequireDualStack") return [];
  const detail = "this cluster is not configured for dual-stack services";
  const families = listAt(object, "spec", "ipFamilies");
  return [
    fieldErrors.invalid("spec.ipFamilyPolicy", "RequireDualStack", detail),
    ...families.flatMap((family, index) =>
      family === "IPv4"
        ? []
        : [fieldErrors.invalid(`spec.ipFamilies[${index}]`, family, "not configured on this cluster")],
    ),
  ];
}

function typeErrors(object: JsonObject, ip: string): FieldError[] {
  const type = stringAt(object, "spec", "type") ?? "";
  if (!serviceTypes.includes(type)) return [fieldErrors.unsupported("spec.type", type, serviceTypes)];
  if (type === "ExternalName") {
    const errors =
      ip === "" ? [] : [fieldErrors.forbidden("spec.clusterIPs", "may not be set for ExternalName services")];
    return (stringAt(object, "spec", "externalName") ?? "") === ""
      ? [...errors, fieldErrors.required("spec.externalName")]
      : errors;
  }
  if (ip !== "None") return listAt(object, "spec", "ports").length === 0 ? [fieldErrors.required("spec.ports")] : [];
  return type === "ClusterIP"
    ? []
    : [fieldErrors.invalid("spec.clusterIPs[0]", ip, `may not be set to 'None' for ${type} services`)];
}

function portErrors(object: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const ports = listAt(object, "spec", "ports");
  for (const [index, port] of ports.entries()) {
    const name = stringAt(port, "name") ?? "";
    if (ports.length > 1 && name === "") errors.push(fieldErrors.required(`spec.ports[${index}].name`));
    if (name !== "" && ports.slice(0, index).some((other) => stringAt(other, "name") === name))
      errors.push(fieldErrors.duplicate(`spec.ports[${index}].name`, name));
    for (const key of ["port", "targetPort"]) {
      const number = valueAt(port, key);
      if (typeof number !== "number" || (number >= 1 && number <= 65_535)) continue;
      errors.push(fieldErrors.invalid(`spec.ports[${index}].${key}`, number, portRange));
    }
  }
  return errors;
}

function ipProblem(ip: string, context: Context): string | undefined {
  if (!ip.startsWith("10.0.")) return "the provided network does not match the current range";
  const taken = others(context).some((service) => stringAt(service, "spec", "clusterIP") === ip);
  return taken ? "provided IP is already allocated" : undefined;
}

export function serviceWarnings(object: JsonObject): string[] {
  const ignored =
    stringAt(object, "spec", "clusterIP") === "None" && stringAt(object, "spec", "sessionAffinity") === "ClientIP";
  return ignored ? ["spec.SessionAffinity is ignored for headless services"] : [];
}
