import { isJsonObject, type Json, parseJson } from "#shared/base/json.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

const references = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);
/** Dialects that every validator knows without fetching them. */
const knownDialects =
  /^https?:\/\/json-schema\.org\/(?:schema|draft-0[467]\/schema|draft\/20(?:19-09|20-12)\/schema)#?$/;

/** Deeper than any real values. Each level needs space on the stack. */
const maxDepth = 500;

/**
 * A schema of values may refer only to itself. Helm would fetch any other URL, and read files of its host.
 * @throws ManifestError `ChartRefused`
 */
export function checkValuesSchema(file: string, content: Uint8Array): void {
  check(file, { value: parsed(file, content), field: "", depth: 0 });
}

function parsed(file: string, content: Uint8Array): Json {
  try {
    return parseJson(new TextDecoder().decode(content));
  } catch {
    throw new ManifestError("ChartRefused", { file }, "must be valid JSON");
  }
}

interface Part {
  readonly value: Json | undefined;
  readonly field: string;
  readonly depth: number;
}

function check(file: string, { value, field, depth }: Part): void {
  if (depth > maxDepth)
    throw new ManifestError(
      "ChartRefused",
      { file },
      `is nested more than ${maxDepth} levels deep; move parts of it to $defs`,
    );
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries())
      check(file, { value: item, field: `${field}[${index}]`, depth: depth + 1 });
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [key, member] of Object.entries(value)) {
    const path = field === "" ? key : `${field}.${key}`;
    if (typeof member !== "string") check(file, { value: member, field: path, depth: depth + 1 });
    else if (references.has(key) && !member.startsWith("#")) {
      throw refusal(
        file,
        path,
        `"${member.slice(0, 200)}" is outside of the schema, and Starling fetches nothing while it renders; copy the definition to $defs, or remove the reference`,
      );
    } else if (key === "$schema" && !knownDialects.test(member)) {
      throw refusal(
        file,
        path,
        `"${member.slice(0, 200)}" is not a known dialect, and Starling fetches nothing while it renders; write http://json-schema.org/draft-07/schema#`,
      );
    }
  }
}

function refusal(file: string, field: string, reason: string): ManifestError {
  return new ManifestError("ChartRefused", { file, field }, reason);
}
