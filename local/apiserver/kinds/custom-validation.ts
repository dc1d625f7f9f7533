import { deepEqual } from "#apiserver/deep-equal.ts";
import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { properties, type StructuralSchema } from "#apiserver/kinds/structural-schema.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

function jsonType(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "bigint") return "integer";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return isJsonObject(value) ? "object" : typeof value;
}

function fits(schema: StructuralSchema, type: string): boolean {
  if (schema["x-kubernetes-int-or-string"] === true) return type === "integer" || type === "string";
  if (schema.type === undefined) return true;
  return schema.type === type || (schema.type === "number" && type === "integer");
}

const formats: Readonly<Record<string, RegExp>> = {
  "date-time": /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/,
  date: /^\d{4}-\d\d-\d\d$/,
  uuid: /^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$/,
  ipv4: /^(\d{1,3}\.){3}\d{1,3}$/,
  email: /^[^@\s]+@[^@\s]+$/,
};

/** The schema errors of a custom resource, in the words of kube-openapi and the apiextensions server. */
function schemaErrors(schema: StructuralSchema, value: Json, path = ""): FieldError[] {
  const errors: FieldError[] = [];
  if (value === null && schema.nullable === true) return errors;
  const type = jsonType(value);
  if (!fits(schema, type)) {
    const desired = schema["x-kubernetes-int-or-string"] === true ? "integer,string" : String(schema.type);
    errors.push(
      fieldErrors.typeInvalid(path, type, `${path} in body must be of type ${desired}: ${JSON.stringify(type)}`),
    );
  }
  if (Array.isArray(schema.enum) && !schema.enum.some((each) => deepEqual(each, value))) {
    errors.push(fieldErrors.unsupported(path, value, schema.enum.map(String)));
  }
  if (schema.type === "integer" && type === "number") {
    errors.push(fieldErrors.invalid("<nil>", "", `Checked value must be of type integer (default format) in ${path}`));
  }
  if (errors.length > 0) return errors;
  if (typeof value === "string") return [...errors, ...stringErrors(schema, value, path)];
  if (typeof value === "number" || typeof value === "bigint") return [...errors, ...numberErrors(schema, value, path)];
  if (Array.isArray(value)) return [...errors, ...listErrors(schema, value, path)];
  return isJsonObject(value) ? [...errors, ...objectErrors(schema, value, path)] : errors;
}

function limit(schema: StructuralSchema, name: string): number | undefined {
  const value = schema[name];
  return typeof value === "number" ? value : undefined;
}

function stringErrors(schema: StructuralSchema, value: string, path: string): FieldError[] {
  const maxLength = limit(schema, "maxLength");
  const minLength = limit(schema, "minLength");
  const length = [...value].length;
  if (maxLength !== undefined && length > maxLength) return [fieldErrors.tooLong(path, maxLength)];
  if (minLength !== undefined && length < minLength) {
    return [fieldErrors.invalid(path, value, `${path} in body should be at least ${minLength} chars long`)];
  }
  if (typeof schema.pattern === "string" && !new RegExp(schema.pattern, "u").test(value)) {
    return [fieldErrors.invalid(path, value, `${path} in body should match '${schema.pattern}'`)];
  }
  const format = typeof schema.format === "string" ? formats[schema.format] : undefined;
  if (format === undefined || format.test(value)) return [];
  const detail = `${path} in body must be of type ${String(schema.format)}: ${JSON.stringify(value)}`;
  return [fieldErrors.typeInvalid(path, value, detail)];
}

function numberErrors(schema: StructuralSchema, value: number | bigint, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const minimum = limit(schema, "minimum");
  const maximum = limit(schema, "maximum");
  const multiple = limit(schema, "multipleOf");
  const number = Number(value);
  if (maximum !== undefined && (schema.exclusiveMaximum === true ? number >= maximum : number > maximum)) {
    const what = schema.exclusiveMaximum === true ? "less than" : "less than or equal to";
    errors.push(fieldErrors.invalid(path, value, `${path} in body should be ${what} ${maximum}`));
  }
  if (minimum !== undefined && (schema.exclusiveMinimum === true ? number <= minimum : number < minimum)) {
    const what = schema.exclusiveMinimum === true ? "greater than" : "greater than or equal to";
    errors.push(fieldErrors.invalid(path, value, `${path} in body should be ${what} ${minimum}`));
  }
  if (multiple !== undefined && number % multiple !== 0) {
    errors.push(fieldErrors.invalid(path, value, `${path} in body should be a multiple of ${multiple}`));
  }
  return errors;
}

function listErrors(schema: StructuralSchema, value: readonly Json[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const maxItems = limit(schema, "maxItems");
  const minItems = limit(schema, "minItems");
  if (maxItems !== undefined && value.length > maxItems) errors.push(fieldErrors.tooMany(path, value.length, maxItems));
  if (minItems !== undefined && value.length < minItems) {
    errors.push(fieldErrors.invalid(path, value.length, `${path} in body should have at least ${minItems} items`));
  }
  const items = isJsonObject(schema.items) ? schema.items : undefined;
  if (items !== undefined)
    for (const [index, item] of value.entries()) errors.push(...schemaErrors(items, item, `${path}[${index}]`));
  return [...errors, ...duplicateErrors(schema, value, path)];
}

function duplicateErrors(schema: StructuralSchema, value: readonly Json[], path: string): FieldError[] {
  const listType = schema["x-kubernetes-list-type"];
  const keys = Array.isArray(schema["x-kubernetes-list-map-keys"])
    ? schema["x-kubernetes-list-map-keys"].map(String)
    : [];
  if (listType !== "set" && listType !== "map") return [];
  const identities = value.map((item) => {
    if (listType === "set" || !isJsonObject(item)) return item;
    return Object.fromEntries(keys.map((key) => [key, item[key]]));
  });
  const errors: FieldError[] = [];
  for (const [index, identity] of identities.entries()) {
    const first = identities.findIndex((each) => deepEqual(each, identity));
    if (first < index) errors.push(fieldErrors.duplicate(`${path}[${index}]`, identity));
  }
  return errors;
}

function objectErrors(schema: StructuralSchema, value: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const prefix = path === "" ? "" : `${path}.`;
  const names = Object.keys(value);
  const maxProperties = limit(schema, "maxProperties");
  const minProperties = limit(schema, "minProperties");
  if (maxProperties !== undefined && names.length > maxProperties) {
    errors.push(fieldErrors.tooMany(path, names.length, maxProperties));
  }
  if (minProperties !== undefined && names.length < minProperties) {
    errors.push(
      fieldErrors.invalid(path, names.length, `${path} in body should have at least ${minProperties} properties`),
    );
  }
  const known = properties(schema);
  const other = isJsonObject(schema.additionalProperties) ? schema.additionalProperties : undefined;
  for (const [key, member] of Object.entries(value)) {
    const child = known.get(key) ?? other;
    if (child !== undefined && member !== undefined) errors.push(...schemaErrors(child, member, prefix + key));
  }
  for (const required of Array.isArray(schema.required) ? schema.required : []) {
    if (value[String(required)] === undefined) errors.push(fieldErrors.required(`${prefix}${String(required)}`));
  }
  return errors;
}

const blocking = new Set([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
]);

/** Whether any part of a schema has validation rules (`x-kubernetes-validations`). */
function hasRules(schema: Json | undefined): boolean {
  if (Array.isArray(schema)) return schema.some((each: Json) => hasRules(each));
  if (!isJsonObject(schema)) return false;
  return schema["x-kubernetes-validations"] !== undefined || Object.values(schema).some(hasRules);
}

/** The errors of an object. A last entry states that rules were not checked, if the errors prevent that. */
export function customErrors(schema: StructuralSchema, object: JsonObject): FieldError[] {
  const errors = schemaErrors(schema, object);
  if (!errors.some(({ reason }) => blocking.has(reason ?? "")) || !hasRules(schema)) return errors;
  return [
    ...errors,
    fieldErrors.invalid(
      "<nil>",
      null,
      "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
    ),
  ];
}
