import { jsonSchemaOf, type WritableKind } from "#shared/fleet/kinds/document.ts";

/** One field of a kind, as its JSON Schema describes it. */
export interface KindField {
  /** `spec.rollout.stages[].name`. */
  readonly path: string;
  /** `string`, `integer or string`, `list`, `map`, `object`, `"basic" or "bearer"`. */
  readonly type: string;
  readonly required: boolean;
  /** As JSON. */
  readonly default?: string;
  /** `1024 characters`, `100 items`, `100 members`: the largest allowed size. */
  readonly most?: string;
}

interface Schema {
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | false;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

/** Every field of metadata and spec in the kind's schema, in the schema's order. */
export function fieldsOf(kind: WritableKind): readonly KindField[] {
  const { properties } = jsonSchemaOf(kind) as Schema;
  return Object.entries(properties ?? {})
    .filter(([name]) => name === "metadata" || name === "spec")
    .flatMap(([name, schema]) => fieldsBelow(schema, name));
}

function fieldsBelow(schema: Schema, path: string): readonly KindField[] {
  const fields: KindField[] = [];
  for (const [name, child] of Object.entries(membersOf(schema))) {
    const at = `${path}.${name}`;
    const fallback = child.default === undefined ? {} : { default: JSON.stringify(child.default) };
    fields.push({ path: at, type: typeOf(child), required: isRequired(schema, name), ...fallback, ...mostOf(child) });
    fields.push(...fieldsBelow(child.items ?? child, child.items === undefined ? at : `${at}[]`));
  }
  return fields;
}

/** For a union, the members of all its forms. */
function membersOf(schema: Schema): Readonly<Record<string, Schema>> {
  const members: Record<string, Schema> = {};
  for (const form of [...(schema.oneOf ?? []), ...(schema.anyOf ?? []), schema]) {
    for (const [name, child] of Object.entries(form.properties ?? {})) {
      const before = members[name];
      members[name] = before === undefined ? child : mergeConstants(before, child);
    }
  }
  return members;
}

/** A discriminator has one constant in each form. */
function mergeConstants(a: Schema, b: Schema): Schema {
  const values = [...(a.enum ?? [a.const]), ...(b.enum ?? [b.const])].filter((value) => value !== undefined);
  return values.length === 0 ? a : { enum: [...new Set(values)] };
}

function isRequired(schema: Schema, name: string): boolean {
  const forms = schema.oneOf ?? schema.anyOf ?? [schema];
  return forms.every((form) => form.required?.includes(name) === true);
}

function typeOf(schema: Schema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  const forms = schema.anyOf ?? schema.oneOf;
  if (forms !== undefined) return [...new Set(forms.map(typeOf))].join(" or ");
  if (schema.type === "array") return "list";
  return isMap(schema) ? "map" : (schema.type ?? "any");
}

function mostOf({ maxLength, maxItems, maxProperties }: Schema): { most?: string } {
  if (maxLength !== undefined) return { most: `${maxLength} characters` };
  if (maxItems !== undefined) return { most: `${maxItems} items` };
  return maxProperties === undefined ? {} : { most: `${maxProperties} members` };
}

function isMap(schema: Schema): boolean {
  return schema.type === "object" && typeof schema.additionalProperties === "object";
}
