import { isJsonObject, type Json, parseJson } from "#shared/base/json.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

const references = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);
/** Those that every validator knows without fetching them. */
const knownDialects =
  /^https?:\/\/json-schema\.org\/(?:schema|draft-0[467]\/schema|draft\/20(?:19-09|20-12)\/schema)#?$/;

/**
 * A schema of values may refer to itself and to nothing else: Helm fetches any other URL, and reads files of its host.
 * @throws ManifestError `ChartRefused`
 */
export function checkValuesSchema(file: string, content: Uint8Array): void {
  check(file, parsed(file, content), "");
}

function parsed(file: string, content: Uint8Array): Json {
  try {
    return parseJson(new TextDecoder().decode(content));
  } catch {
    throw new ManifestError("ChartRefused", { file }, "is no JSON");
  }
}

function check(file: string, value: Json | undefined, field: string): void {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) check(file, item, `${field}[${index}]`);
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [key, member] of Object.entries(value)) {
    const path = field === "" ? key : `${field}.${key}`;
    if (typeof member !== "string") check(file, member, path);
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
