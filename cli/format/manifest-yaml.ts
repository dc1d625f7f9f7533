import { dump } from "js-yaml";
import { parseJson, stringifyJson } from "#shared/base/json.ts";
import { writtenSchema } from "#shared/source/yaml/yaml-schema.ts";

/** As YAML that kubectl reads as the same value, integers included that a double cannot hold. */
export function manifestYaml(value: unknown): string {
  return dump(parseJson(stringifyJson(value)), { noRefs: true, schema: writtenSchema });
}
