import { dump } from "js-yaml";
import { parseJson, stringifyJson } from "#shared/base/json.ts";
import { plainText } from "#shared/base/plain-text.ts";
import { writtenSchema } from "#shared/source/yaml/yaml-schema.ts";

/**
 * Writes YAML that kubectl reads as the same value, also integers that a double cannot hold. A text with control characters is
 * quoted and escaped, because the library does not escape characters that change the direction of a line.
 */
export function manifestYaml(value: unknown): string {
  const json = stringifyJson(value);
  let mark = "obeyed";
  while (json.includes(mark)) mark += "0";
  const quoted: string[] = [];
  const marked = json.replaceAll(/"(?:[^"\\]|\\.)*"/g, (text) => {
    const escaped = plainText(text);
    return escaped === text ? text : `"${mark}-${quoted.push(escaped) - 1}-"`;
  });
  const yaml = dump(parseJson(marked), { noRefs: true, schema: writtenSchema });
  return yaml.replaceAll(new RegExp(`${mark}-(\\d+)-`, "g"), (_mark, index) => quoted[Number(index)] ?? "");
}
