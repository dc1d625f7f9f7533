import type { Json } from "#apiserver/json.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

export const portRange = "must be between 1 and 65535, inclusive";
const protocols = ["SCTP", "TCP", "UDP"];

export function isPort(value: Json | undefined): boolean {
  return typeof value === "number" && value >= 1 && value <= 65_535;
}

/** The errors of a port name (IsValidPortName). */
export function portNameProblems(name: string): string[] {
  return [
    ...(name.length > 15 ? ["must be no more than 15 characters"] : []),
    ...(/^[-a-z0-9]+$/.test(name) ? [] : ["must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"]),
    ...(/[a-z]/.test(name) ? [] : ["must contain at least one letter (a-z)"]),
    ...(name.includes("--") ? ["must not contain consecutive hyphens"] : []),
    ...(/^-|-$/.test(name) ? ["must not begin or end with a hyphen"] : []),
  ];
}

/** The errors of the ports of a container. */
export function portErrors(container: Json, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  for (const [index, port] of listAt(container, "ports").entries()) {
    const at = `${field}.ports[${index}]`;
    const number = valueAt(port, "containerPort");
    const hostPort = valueAt(port, "hostPort");
    const protocol = stringAt(port, "protocol");
    errors.push(...nameErrors(stringAt(port, "name") ?? "", `${at}.name`, names));
    if (number === undefined || number === 0) errors.push(fieldErrors.required(`${at}.containerPort`));
    else if (!isPort(number)) errors.push(fieldErrors.invalid(`${at}.containerPort`, number, portRange));
    if (hostPort !== undefined && hostPort !== 0 && !isPort(hostPort))
      errors.push(fieldErrors.invalid(`${at}.hostPort`, hostPort, portRange));
    if (protocol !== undefined && !protocols.includes(protocol)) {
      errors.push(fieldErrors.unsupported(`${at}.protocol`, protocol, protocols));
    }
  }
  return errors;
}

function nameErrors(name: string, field: string, seen: Set<string>): FieldError[] {
  if (name === "") return [];
  const problems = portNameProblems(name);
  if (problems.length > 0) return problems.map((problem) => fieldErrors.invalid(field, name, problem));
  if (seen.has(name)) return [fieldErrors.duplicate(field, name)];
  seen.add(name);
  return [];
}

/**
 * The errors of host ports: two containers use the same one, or it differs from the container's port under the node's
 * network.
 */
export function hostPortErrors(spec: Json | undefined, field: string): FieldError[] {
  const taken = new Set<string>();
  const duplicates: FieldError[] = [];
  const mismatches: FieldError[] = [];
  const onHost = valueAt(spec, "hostNetwork") === true;
  for (const [index, container] of listAt(spec, "containers").entries()) {
    for (const [position, port] of listAt(container, "ports").entries()) {
      const hostPort = valueAt(port, "hostPort") ?? 0;
      if (hostPort === 0) continue;
      const at = `${field}.containers[${index}].ports[${position}].hostPort`;
      const key = `${stringAt(port, "protocol")}/${stringAt(port, "hostIP") ?? ""}/${String(hostPort)}`;
      if (taken.has(key)) duplicates.push(fieldErrors.duplicate(at, key));
      taken.add(key);
      if (onHost && hostPort !== (valueAt(port, "containerPort") ?? 0)) {
        mismatches.push(fieldErrors.invalid(at, hostPort, "must match `containerPort` when `hostNetwork` is true"));
      }
    }
  }
  return [...duplicates, ...mismatches];
}
