import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import type { Kind } from "#apiserver/kinds/kind.ts";
import { labelsOf, listAt, stringAt, valueAt } from "#apiserver/object-fields.ts";
import { nameOf } from "#apiserver/operations/object-meta.ts";

interface Column {
  readonly name: string;
  readonly type?: string;
  /** With 1, only `-o wide` shows the column. */
  readonly priority?: 1;
  readonly description?: string;
  readonly cell: (object: JsonObject, nowMs: number) => Json;
}

const nameDescription =
  "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

const ageUnits: readonly (readonly [string, number, number])[] = [
  ["s", 1, 120],
  ["m", 60, 180],
  ["h", 3600, 48],
  ["d", 86_400, 730],
];

/** The time since a timestamp as kubectl prints it, for example `5m`, in the largest unit that keeps two digits. */
function age(timestamp: string | undefined, nowMs: number): string {
  if (timestamp === undefined) return "<unknown>";
  const seconds = Math.max(0, Math.floor((nowMs - Date.parse(timestamp)) / 1_000));
  for (const [unit, size, limit] of ageUnits) {
    if (seconds < size * limit) return `${Math.floor(seconds / size)}${unit}`;
  }
  return `${Math.floor(seconds / (365 * 86_400))}y`;
}

const name: Column = { name: "Name", description: nameDescription, cell: nameOf };
const ageColumn: Column = {
  name: "Age",
  cell: (object, now) => age(stringAt(object, "metadata", "creationTimestamp"), now),
};

function number(label: string, ...path: readonly string[]): Column {
  return { name: label, cell: (object) => valueAt(object, ...path) ?? 0 };
}

function text(label: string, ...path: readonly string[]): Column {
  return { name: label, cell: (object) => String(valueAt(object, ...path) ?? "") };
}

function size(label: string, ...members: readonly string[]): Column {
  return {
    name: label,
    cell: (object) => members.reduce((sum, key) => sum + Object.keys(valueAt(object, key) ?? {}).length, 0),
  };
}

function containers(object: JsonObject): readonly Json[] {
  return listAt(object, "spec", "template", "spec", "containers");
}

const wide: readonly Column[] = [
  {
    name: "Containers",
    priority: 1,
    cell: (object) =>
      containers(object)
        .map((each) => stringAt(each, "name"))
        .join(","),
  },
  {
    name: "Images",
    priority: 1,
    cell: (object) =>
      containers(object)
        .map((each) => stringAt(each, "image"))
        .join(","),
  },
  { name: "Selector", priority: 1, cell: (object) => pairs(valueAt(object, "spec", "selector", "matchLabels")) },
];

function pairs(map: Json | undefined): string {
  if (!isJsonObject(map) || Object.keys(map).length === 0) return "<none>";
  return Object.entries(map)
    .map(([key, value]) => `${key}=${String(value)}`)
    .sort()
    .join(",");
}

function ready(object: JsonObject): string {
  return `${String(valueAt(object, "status", "readyReplicas") ?? 0)}/${String(valueAt(object, "spec", "replicas") ?? 0)}`;
}

function podReady(object: JsonObject): string {
  const statuses = listAt(object, "status", "containerStatuses");
  const count = statuses.filter((status) => valueAt(status, "ready") === true).length;
  return `${count}/${listAt(object, "spec", "containers").length}`;
}

function podStatus(object: JsonObject): string {
  if (valueAt(object, "metadata", "deletionTimestamp") !== undefined) return "Terminating";
  const waiting = listAt(object, "status", "containerStatuses").map((status) =>
    stringAt(status, "state", "waiting", "reason"),
  );
  return waiting.find((reason) => reason !== undefined) ?? stringAt(object, "status", "phase") ?? "Unknown";
}

function servicePorts(object: JsonObject): string {
  const ports = listAt(object, "spec", "ports").map((port) => {
    const nodePort = valueAt(port, "nodePort");
    return `${String(valueAt(port, "port"))}${nodePort === undefined ? "" : `:${String(nodePort)}`}/${stringAt(port, "protocol")}`;
  });
  return ports.length === 0 ? "<none>" : ports.join(",");
}

const createdAt = text("Created At", "metadata", "creationTimestamp");

/** Columns by kind. All other kinds have name and age. */
const columnsByKind: Readonly<Record<string, readonly Column[]>> = {
  ConfigMap: [name, size("Data", "data", "binaryData"), ageColumn],
  Secret: [name, text("Type", "type"), size("Data", "data"), ageColumn],
  ServiceAccount: [name, { name: "Secrets", cell: (object) => listAt(object, "secrets").length }, ageColumn],
  Namespace: [name, text("Status", "status", "phase"), ageColumn],
  Deployment: [
    name,
    { name: "Ready", cell: ready, description: "Number of the pod with ready state" },
    number("Up-to-date", "status", "updatedReplicas"),
    number("Available", "status", "availableReplicas"),
    ageColumn,
    ...wide,
  ],
  ReplicaSet: [
    name,
    number("Desired", "spec", "replicas"),
    number("Current", "status", "replicas"),
    number("Ready", "status", "readyReplicas"),
    ageColumn,
    ...wide,
  ],
  StatefulSet: [name, { name: "Ready", cell: ready }, ageColumn, ...wide.slice(0, 2)],
  DaemonSet: [
    name,
    number("Desired", "status", "desiredNumberScheduled"),
    number("Current", "status", "currentNumberScheduled"),
    number("Ready", "status", "numberReady"),
    number("Up-to-date", "status", "updatedNumberScheduled"),
    number("Available", "status", "numberAvailable"),
    ageColumn,
    ...wide,
  ],
  Pod: [
    name,
    { name: "Ready", cell: podReady },
    { name: "Status", cell: podStatus },
    { name: "Restarts", cell: () => "0" },
    ageColumn,
  ],
  Service: [
    name,
    text("Type", "spec", "type"),
    { name: "Cluster-IP", cell: (object) => stringAt(object, "spec", "clusterIP") ?? "<none>" },
    { name: "External-IP", cell: (object) => stringAt(object, "spec", "externalName") ?? "<none>" },
    { name: "Port(s)", cell: servicePorts },
    ageColumn,
    { name: "Selector", priority: 1, cell: (object) => pairs(valueAt(object, "spec", "selector")) },
  ],
  Job: [
    name,
    {
      name: "Status",
      cell: (object) =>
        listAt(object, "status", "conditions")
          .map((each) => stringAt(each, "type"))
          .at(-1) ?? "Running",
    },
    {
      name: "Completions",
      cell: (object) =>
        `${String(valueAt(object, "status", "succeeded") ?? 0)}/${String(valueAt(object, "spec", "completions") ?? 1)}`,
    },
    ageColumn,
  ],
  PersistentVolumeClaim: [name, text("Status", "status", "phase"), text("Volume", "spec", "volumeName"), ageColumn],
  CustomResourceDefinition: [name, { ...createdAt, type: "date" }],
  ClusterRole: [name, createdAt],
  Role: [name, createdAt],
  ClusterRoleBinding: [name, { name: "Role", cell: roleOf }, ageColumn],
  RoleBinding: [name, { name: "Role", cell: roleOf }, ageColumn],
};

function roleOf(object: JsonObject): string {
  return `${stringAt(object, "roleRef", "kind") ?? ""}/${stringAt(object, "roleRef", "name") ?? ""}`;
}

function customColumns(printer: readonly JsonObject[]): readonly Column[] {
  if (printer.length === 0) return [name, { ...ageColumn, type: "date", cell: createdAt.cell }];
  const columns = printer.map((column): Column => {
    const path = String(column.jsonPath ?? "");
    const steps = path
      .replace(/^\./, "")
      .split(/\.|\['([^']+)'\]/)
      .filter((step): step is string => step !== undefined && step !== "");
    return {
      name: String(column.name),
      type: String(column.type),
      description: `Custom resource definition column (in JSONPath format): ${path}`,
      ...(column.priority === 1 ? { priority: 1 } : {}),
      cell: (object) => valueAt(object, ...steps) ?? null,
    };
  });
  return [name, ...columns];
}

export interface TableOptions {
  readonly metadata: JsonObject;
  /** The part of its object that each row contains. */
  readonly include: "Metadata" | "Object" | "None";
  readonly nowMs: number;
}

/** The Table of objects that `kubectl get` prints. */
export function toTable(kind: Kind, objects: readonly JsonObject[], options: TableOptions): JsonObject {
  const columns =
    kind.custom === undefined
      ? (columnsByKind[kind.kind] ?? [name, ageColumn])
      : customColumns(kind.custom.printerColumns);
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata: options.metadata,
    columnDefinitions: columns.map((column) => ({
      name: column.name,
      type: column.type ?? "string",
      format: column === name ? "name" : "",
      description: column.description ?? column.name,
      priority: column.priority ?? 0,
    })),
    rows: objects.map((object) => ({
      cells: columns.map((column) => column.cell(object, options.nowMs)),
      object: rowObject(object, options.include),
    })),
  };
}

function rowObject(object: JsonObject, include: TableOptions["include"]): Json {
  if (include === "None") return null;
  return include === "Object" ? object : partialMetadata(object);
}

/** An object with nothing but its metadata. */
export function partialMetadata(object: JsonObject): JsonObject {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object.metadata };
}

/** True where the labels of the object match a selector's matchLabels. */
export function matchesLabels(object: JsonObject, desired: Json | undefined): boolean {
  const labels = labelsOf(object);
  return isJsonObject(desired) && Object.entries(desired).every(([key, value]) => labels[key] === value);
}
