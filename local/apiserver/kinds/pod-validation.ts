import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { hostPortErrors, portErrors } from "#apiserver/kinds/port-validation.ts";
import { quantityValue } from "#apiserver/kinds/quantity.ts";
import { listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { labelRule } from "#apiserver/operations/object-meta.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

const containerLists = ["initContainers", "containers"] as const;

/** The order in which a server checks the sources of a volume. The second source that it finds is an error. */
const volumeSources = [
  "emptyDir",
  "hostPath",
  "gitRepo",
  "gcePersistentDisk",
  "awsElasticBlockStore",
  "secret",
  "nfs",
  "iscsi",
  "persistentVolumeClaim",
  "downwardAPI",
  "configMap",
  "projected",
  "ephemeral",
  "csi",
  "image",
];
const probeHandlers = ["exec", "httpGet", "tcpSocket", "grpc"];
const pullPolicies = ["Always", "IfNotPresent", "Never"];
const restartPolicies = ["Always", "OnFailure", "Never"];
const dnsPolicies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const standardResources = ["cpu", "memory", "ephemeral-storage", "storage"];

/** The errors of names that are missing, not a label or duplicates. */
function nameErrors(items: readonly Json[], field: string): FieldError[] {
  const seen = new Set<string>();
  const errors: FieldError[] = [];
  for (const [index, item] of items.entries()) {
    const name = stringAt(item, "name") ?? "";
    const at = `${field}[${index}].name`;
    const problem = name === "" ? undefined : labelRule(name);
    if (name === "") errors.push(fieldErrors.required(at));
    else if (problem !== undefined) errors.push(fieldErrors.invalid(at, name, problem));
    else if (seen.has(name)) errors.push(fieldErrors.duplicate(at, name));
    seen.add(name);
  }
  return errors;
}

function volumeErrors(volumes: readonly Json[], field: string): FieldError[] {
  const errors = nameErrors(volumes, field);
  for (const [index, volume] of volumes.entries()) {
    const [, second] = volumeSources.filter((source) => valueAt(volume, source) !== undefined);
    if (second === undefined) continue;
    errors.push(fieldErrors.forbidden(`${field}[${index}].${second}`, "may not specify more than 1 volume type"));
  }
  return errors;
}

function envErrors(container: Json, field: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, entry] of listAt(container, "env").entries()) {
    const at = `${field}.env[${index}]`;
    const name = stringAt(entry, "name") ?? "";
    if (name === "") errors.push(fieldErrors.required(`${at}.name`));
    else if (!/^[ -<>-~]+$/.test(name)) {
      const detail = "a valid environment variable name must consist only of printable ASCII characters other than '='";
      errors.push(fieldErrors.invalid(`${at}.name`, name, detail));
    }
    if (valueAt(entry, "valueFrom") !== undefined && (stringAt(entry, "value") ?? "") !== "") {
      errors.push(fieldErrors.invalid(`${at}.valueFrom`, "", "may not be specified when `value` is not empty"));
    }
  }
  return errors;
}

function mountErrors(container: Json, field: string, volumes: ReadonlySet<string>): FieldError[] {
  const errors: FieldError[] = [];
  const paths = new Set<string>();
  for (const [index, mount] of listAt(container, "volumeMounts").entries()) {
    const at = `${field}.volumeMounts[${index}]`;
    const name = stringAt(mount, "name") ?? "";
    const path = stringAt(mount, "mountPath") ?? "";
    if (name === "") errors.push(fieldErrors.required(`${at}.name`));
    else if (!volumes.has(name)) errors.push(fieldErrors.notFound(`${at}.name`, name));
    if (path === "") errors.push(fieldErrors.required(`${at}.mountPath`));
    else if (paths.has(path)) errors.push(fieldErrors.invalid(`${at}.mountPath`, path, "must be unique"));
    paths.add(path);
  }
  return errors;
}

function quantities(container: Json, list: string): [string, string][] {
  const map = valueAt(container, "resources", list);
  return isJsonObject(map) ? Object.entries(map).map(([key, value]) => [key, String(value)]) : [];
}

function resourceErrors(container: Json, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const limits = new Map(quantities(container, "limits"));
  for (const list of ["limits", "requests"]) {
    for (const [name, amount] of quantities(container, list)) {
      const at = `${field}.resources.${list}[${name}]`;
      if (!name.includes("/") && !standardResources.includes(name) && !name.startsWith("hugepages-")) {
        errors.push(fieldErrors.invalid(at, name, "must be a standard resource type or fully qualified"));
        errors.push(fieldErrors.invalid(at, name, "must be a standard resource for containers"));
      }
      if (quantityValue(amount) < 0n)
        errors.push(fieldErrors.invalid(at, amount, "must be greater than or equal to 0"));
      const limit = limits.get(name);
      if (list === "requests" && limit !== undefined && quantityValue(amount) > quantityValue(limit)) {
        const detail = `must be less than or equal to ${name} limit of ${limit}`;
        errors.push(fieldErrors.invalid(`${field}.resources.requests`, amount, detail));
      }
    }
  }
  return errors;
}

function probeErrors(container: Json, field: string): FieldError[] {
  return ["livenessProbe", "readinessProbe", "startupProbe"].flatMap((probe) => {
    const given = probeHandlers.filter((handler) => valueAt(container, probe, handler) !== undefined);
    const second = given[1];
    if (second === undefined) return [];
    return [fieldErrors.forbidden(`${field}.${probe}.${second}`, "may not specify more than 1 handler type")];
  });
}

function containerErrors(container: Json, field: string, volumes: ReadonlySet<string>): FieldError[] {
  const policy = stringAt(container, "imagePullPolicy");
  return [
    ...((stringAt(container, "image") ?? "") === "" ? [fieldErrors.required(`${field}.image`)] : []),
    ...(policy === undefined || pullPolicies.includes(policy)
      ? []
      : [fieldErrors.unsupported(`${field}.imagePullPolicy`, policy, pullPolicies)]),
    ...portErrors(container, field),
    ...envErrors(container, field),
    ...mountErrors(container, field, volumes),
    ...resourceErrors(container, field),
    ...probeErrors(container, field),
  ];
}

/**
 * The errors of a Pod's spec or a Pod template's spec. `claims` names the volumes that are defined outside the spec.
 */
export function podSpecErrors(spec: Json | undefined, field: string, claims: readonly string[] = []): FieldError[] {
  const volumes = listAt(spec, "volumes");
  const known = new Set([...volumes.map((volume) => stringAt(volume, "name") ?? ""), ...claims]);
  const errors = volumeErrors(volumes, `${field}.volumes`);
  if (listAt(spec, "containers").length === 0) errors.push(fieldErrors.required(`${field}.containers`));
  for (const list of containerLists) {
    const containers = listAt(spec, list);
    errors.push(...nameErrors(containers, `${field}.${list}`));
    for (const [index, container] of containers.entries()) {
      errors.push(...containerErrors(container, `${field}.${list}[${index}]`, known));
    }
  }
  for (const [key, allowed] of [
    ["restartPolicy", restartPolicies],
    ["dnsPolicy", dnsPolicies],
  ] as const) {
    const value = stringAt(spec, key);
    if (value !== undefined && !allowed.includes(value))
      errors.push(fieldErrors.unsupported(`${field}.${key}`, value, allowed));
  }
  return [...errors, ...hostPortErrors(spec, field)];
}

/** The warnings of a Pod's spec: items that an apply would merge into one, or that hide each other. */
export function podSpecWarnings(spec: Json | undefined, field: string): string[] {
  return containerLists.flatMap((list) => {
    const containers = [...listAt(spec, list).entries()].map(([index, container]) => ({
      container,
      at: `${field}.${list}[${index}]`,
    }));
    const firstPorts = new Map<string, string>();
    return containers.flatMap(({ container, at }) => [
      ...envWarnings(container, at),
      ...portWarnings(container, at, firstPorts),
    ]);
  });
}

function envWarnings(container: Json, at: string): string[] {
  const names = listAt(container, "env").map((entry) => JSON.stringify(stringAt(entry, "name") ?? ""));
  return names.flatMap((name, position) =>
    names.indexOf(name) === position
      ? []
      : [`${at}.env[${position}]: hides previous definition of ${name}, which may be dropped when using apply`],
  );
}

/** @param first - the first definition of each port and of each port name, over all containers. */
function portWarnings(container: Json, at: string, first: Map<string, string>): string[] {
  return [...listAt(container, "ports").entries()].flatMap(([position, port]) => {
    const path = `${at}.ports[${position}]`;
    const name = stringAt(port, "name") ?? "";
    const number = `${String(valueAt(port, "containerPort"))}/${stringAt(port, "protocol")}`;
    const [other, namesake] = [first.get(number), first.get(`name ${name}`)];
    if (other === undefined) first.set(number, path);
    if (namesake === undefined && name !== "") first.set(`name ${name}`, path);
    return [
      ...(other === undefined ? [] : [`${path}: duplicate port definition with ${other}`]),
      ...(namesake === undefined
        ? []
        : [
            `${path}: duplicate port name ${JSON.stringify(name)} with ${namesake}, services and probes that select ports by name will use ${namesake}`,
          ]),
    ];
  });
}

/** The part of a Pod that an update may not change (ValidatePodUpdate). */
export function fixedPartOfPod(object: JsonObject): Json {
  const spec = isJsonObject(object.spec) ? object.spec : {};
  const {
    activeDeadlineSeconds: _deadline,
    tolerations: _tolerations,
    terminationGracePeriodSeconds: _grace,
    ...rest
  } = spec;
  const fixed: Record<string, Json> = { ...(rest as Record<string, Json>) };
  for (const list of containerLists) {
    fixed[list] = listAt(spec, list).map((container) => {
      if (!isJsonObject(container)) return container;
      const { image: _image, ...other } = container;
      return other as Json;
    });
  }
  return fixed;
}
