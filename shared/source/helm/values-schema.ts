import { isJsonObject, type Json, parseJson } from "#shared/base/json.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

const references = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);
/** Those that every validator knows without fetching them. */
const knownDialects =
  /^https?:\/\/json-schema\.org\/(?:schema|draft-0[467]\/schema|draft\/20(?:19-09|20-12)\/schema)#?$/;

/** Deeper than any values are; each level takes of the stack. */
const maxDepth = 500;

/**
 * A schema of values may refer to itself and to nothing else: Helm fetches any other URL, and reads files of its host.
 * @throws ManifestError `ChartRefused`
 */
export function checkValuesSchema(file: string, content: Uint8Array): void {
  check(file, { value: parsed(file, content), field: "", depth: 0 });
}

function parsed(file: string, content: Uint8Array): Json {
  try {
    return parseJson(new TextDecoder().decode(content));
  } catch {
    throw new ManifestError("ChartRefused", { file }, "is no JSON");
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
      `is nested more than ${maxDepth} deep; put parts of it below $defs`,
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
        `"${member.slice(0, 200)}" is not in the schema itself, and nothing is fetched while rendering; copy what is meant below $defs, or remove it`,
      );
    } else if (key === "$schema" && !knownDialects.test(member)) {
      throw refusal(
        file,
        path,
        `"${member.slice(0, 200)}" is no dialect that is known without fetching it; write http://json-schema.org/draft-07/schema#`,
      );
    }
  }
}

function refusal(file: string, field: string, reason: string): ManifestError {
  return new ManifestError("ChartRefused", { file, field }, reason);
}
