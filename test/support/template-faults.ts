import { loadAwsServiceSpecSync } from "@aws-cdk/aws-service-spec";
import type { Property, PropertyType, Resource, SpecDatabase } from "@aws-cdk/service-spec-types";
import type { Stacks, Template, TemplateResource } from "#local/template/cloudformation.ts";

/** The parts of a template that references lead to, besides those that the local machine reads. */
interface ReferencedTemplate extends Template {
  readonly Parameters?: Readonly<Record<string, unknown>>;
  readonly Conditions?: Readonly<Record<string, unknown>>;
}

interface ReferencingResource extends TemplateResource {
  readonly DependsOn?: string | readonly string[];
  readonly Condition?: string;
}

/** CloudFormation resolves these by itself. */
const pseudoParameters = /^AWS::(AccountId|NotificationARNs|NoValue|Partition|Region|StackId|StackName|URLSuffix)$/;

/** Functions of which the service specification says nothing: their value is known when the stack is deployed. */
const intrinsic = /^(Ref|Condition|Fn::[A-Za-z]+)$/;

let specification: SpecDatabase | undefined;

/**
 * Finds what AWS would refuse in templates. @returns a line for each fault, with stack, resource and path.
 *
 * Properties are compared with the service specification that `aws-cdk-lib` itself is generated from: unknown types and
 * properties, missing required ones, values of another type, and words that are not among the allowed ones. References
 * (`Ref`, `Fn::GetAtt`, `Fn::Sub`, `Fn::GetStackOutput`, `DependsOn`, `Condition`) have to lead to something that exists.
 */
export function templateFaults(stacks: Stacks): readonly string[] {
  specification ??= loadAwsServiceSpecSync();
  const spec = specification;
  return Object.entries(stacks).flatMap(([stack, template]) => [
    ...Object.entries(template.Resources).flatMap(([id, resource]) =>
      propertyFaults(spec, resource).map((fault) => `${stack} ${id}${fault}`),
    ),
    ...referenceFaults(spec, stacks, template).map((fault) => `${stack} ${fault}`),
  ]);
}

function propertyFaults(spec: SpecDatabase, { Type, Properties = {} }: TemplateResource): readonly string[] {
  const known = resourceOf(spec, Type);
  if (known === undefined) return [`: there is no resource type ${Type}`];
  return objectFaults(spec, known.properties, { value: Properties, path: "" });
}

function resourceOf(spec: SpecDatabase, type: string): Resource | undefined {
  return spec.lookup("resource", "cloudFormationType", "equals", type)[0];
}

interface Place {
  readonly value: unknown;
  readonly path: string;
}

function objectFaults(
  spec: SpecDatabase,
  properties: Readonly<Record<string, Property>>,
  { value, path }: Place,
): readonly string[] {
  const given = value as Readonly<Record<string, unknown>>;
  const missing = Object.entries(properties)
    .filter(([name, { required }]) => required === true && given[name] === undefined)
    .map(([name]) => `${path}.${name}: the property is required`);
  const faults = Object.entries(given).flatMap(([name, inner]) => {
    const property = properties[name];
    const at = { value: inner, path: `${path}.${name}` };
    if (property === undefined) return [`${at.path}: there is no such property`];
    return typesFaults(spec, [property.type, ...(property.previousTypes ?? [])], at);
  });
  return [...missing, ...faults];
}

/** A value fits when one of the types takes it; else the faults of the first one are told. */
function typesFaults(spec: SpecDatabase, types: readonly PropertyType[], place: Place): readonly string[] {
  const found = types.map((type) => typeFaults(spec, type, place));
  return found.some((faults) => faults.length === 0) ? [] : (found[0] ?? []);
}

function typeFaults(spec: SpecDatabase, type: PropertyType, place: Place): readonly string[] {
  const { value, path } = place;
  if (isIntrinsic(value)) return [];
  const wrong = (desired: string) => [`${path}: ${JSON.stringify(value)} is no ${desired}`];
  switch (type.type) {
    case "union":
      return typesFaults(spec, type.types, place);
    case "array":
      if (!Array.isArray(value)) return wrong("list");
      return value.flatMap((each, index) => typeFaults(spec, type.element, { value: each, path: `${path}[${index}]` }));
    case "map":
      if (!isObject(value)) return wrong("map");
      return Object.entries(value).flatMap(([key, each]) =>
        typeFaults(spec, type.element, { value: each, path: `${path}.${key}` }),
      );
    case "ref":
      if (!isObject(value)) return wrong("object");
      return objectFaults(spec, spec.get("typeDefinition", type.reference.$ref).properties, place);
    case "tag":
      return isObject(value) && "Key" in value && "Value" in value ? [] : wrong("tag");
    case "string":
      if (typeof value !== "string") return wrong("text");
      return among(type.allowedValues, place);
    case "integer":
      if (!Number.isInteger(value)) return wrong("whole number");
      return among(type.allowedValues, place);
    case "number":
      return typeof value === "number" ? [] : wrong("number");
    case "boolean":
      return typeof value === "boolean" ? [] : wrong("boolean");
    case "json":
      return isObject(value) ? [] : wrong("object");
    case "date-time":
      return typeof value === "string" && !Number.isNaN(Date.parse(value)) ? [] : wrong("time");
    case "null":
      return value === null ? [] : wrong("null");
  }
}

function among(allowed: readonly (string | number)[] | undefined, { value, path }: Place): readonly string[] {
  if (allowed === undefined || allowed.includes(value as string | number)) return [];
  return [`${path}: ${JSON.stringify(value)} is none of ${allowed.join(", ")}`];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isIntrinsic(value: unknown): boolean {
  if (!isObject(value)) return false;
  const keys = Object.keys(value);
  return keys.length === 1 && intrinsic.test(keys[0] ?? "");
}

function referenceFaults(spec: SpecDatabase, stacks: Stacks, template: ReferencedTemplate): readonly string[] {
  const attributeFaults = (id: string, attribute: string): readonly string[] => {
    const resource = template.Resources[id];
    if (resource === undefined) return [`refers to ${id}.${attribute}: there is no such resource`];
    if (resource.Type === "AWS::CloudFormation::Stack" && attribute.startsWith("Outputs.")) {
      const output = attribute.slice("Outputs.".length);
      const isThere = Object.values(stacks).some(({ Outputs = {} }) => output in Outputs);
      return isThere ? [] : [`refers to ${id}.${attribute}: no nested stack has that output`];
    }
    const attributes = resourceOf(spec, resource.Type)?.attributes ?? {};
    return attribute in attributes ? [] : [`refers to ${id}.${attribute}: ${resource.Type} has no such attribute`];
  };
  const refFaults = (name: string): readonly string[] => {
    const exists = name in template.Resources || name in (template.Parameters ?? {}) || pseudoParameters.test(name);
    return exists ? [] : [`refers to ${name}: there is no such resource or parameter`];
  };
  const nameFaults = (name: string, own: Readonly<Record<string, unknown>>): readonly string[] => {
    if (name in own) return [];
    const [id = "", ...attribute] = name.split(".");
    return attribute.length === 0 ? refFaults(id) : attributeFaults(id, attribute.join("."));
  };
  const outputFaults = ({ StackName, OutputName }: { readonly StackName: string; readonly OutputName: string }) => {
    const exists = stacks[StackName]?.Outputs?.[OutputName] !== undefined;
    return exists ? [] : [`refers to the output ${OutputName} of ${StackName}: there is no such output`];
  };
  const conditionFaults = (name: string): readonly string[] =>
    name in (template.Conditions ?? {}) ? [] : [`refers to the condition ${name}: there is no such condition`];

  const faultsOf = (key: string, value: unknown): readonly string[] => {
    switch (key) {
      case "Ref":
        return refFaults(String(value));
      case "Fn::GetAtt": {
        const [id = "", ...attribute] = Array.isArray(value) ? value.map(String) : String(value).split(".");
        return attributeFaults(id, attribute.join("."));
      }
      case "Fn::Sub": {
        const [text, own = {}] = (Array.isArray(value) ? value : [value]) as [string, Record<string, unknown>?];
        return [...text.matchAll(/\$\{([^!}][^}]*)\}/g)].flatMap(([, name = ""]) => nameFaults(name, own));
      }
      case "Fn::GetStackOutput":
        return outputFaults(value as { readonly StackName: string; readonly OutputName: string });
      case "Fn::If":
        return conditionFaults(String((value as readonly unknown[])[0]));
      default:
        return [];
    }
  };
  const within = (value: unknown): readonly string[] => {
    if (Array.isArray(value)) return value.flatMap(within);
    if (!isObject(value)) return [];
    return Object.entries(value).flatMap(([key, inner]) => [...faultsOf(key, inner), ...within(inner)]);
  };
  const beside = Object.entries(template.Resources).flatMap(([id, resource]) => {
    const { DependsOn = [], Condition } = resource as ReferencingResource;
    const needed = typeof DependsOn === "string" ? [DependsOn] : DependsOn;
    return [
      ...needed
        .filter((name) => !(name in template.Resources))
        .map((name) => `${id} depends on ${name}: there is no such resource`),
      ...(Condition === undefined ? [] : conditionFaults(Condition).map((fault) => `${id} ${fault}`)),
    ];
  });
  const { Resources, Outputs = {} } = template;
  const inside = [...Object.entries(Resources), ...Object.entries(Outputs)].flatMap(([id, part]) => {
    const { Metadata, ...read } = part as TemplateResource;
    return within(read).map((fault) => `${id} ${fault}`);
  });
  return [...inside, ...beside];
}
