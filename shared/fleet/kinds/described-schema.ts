/** The JSON Schemas of the kinds that people write, with the meaning of each field: for editors. */
import { jsonSchemaOf, type WritableKind, writableKinds } from "#shared/fleet/kinds/document.ts";
import { meaningOf } from "#shared/fleet/kinds/meanings.ts";

interface Schema {
  readonly [member: string]: unknown;
}

const forms = ["oneOf", "anyOf", "allOf"] as const;

/** The schema of one kind. */
export function describedSchema(kind: WritableKind): Schema {
  return described(jsonSchemaOf(kind) as Schema, kind, "");
}

/** The schema of a file with documents of any kind, as `starling init` writes it. */
export function everySchema(): Schema {
  const { $schema } = describedSchema("Source");
  const kinds = writableKinds.map((kind) => {
    const { $schema: _dialect, ...schema } = describedSchema(kind);
    return { title: kind, ...schema };
  });
  return { $schema, title: "Starling", oneOf: kinds };
}

function described(schema: Schema, kind: WritableKind, path: string): Schema {
  const made: Record<string, unknown> = { ...schema };
  const description = path === "" ? undefined : meaningOf(kind, path);
  if (description !== undefined) made.description = description;
  if (isSchema(schema.properties)) {
    made.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([name, child]) => {
        return [name, described(child as Schema, kind, path === "" ? name : `${path}.${name}`)];
      }),
    );
  }
  if (isSchema(schema.items)) made.items = described(schema.items, kind, `${path}[]`);
  for (const form of forms) {
    const those = schema[form];
    if (Array.isArray(those)) made[form] = those.map((one) => described(one as Schema, kind, path));
  }
  return made;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null;
}
