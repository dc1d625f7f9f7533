import { parseTemplate } from "#cli/output/parse-template.ts";
import { JsonPathError, type TemplatePath } from "#cli/output/template.ts";
import { excerpt } from "#shared/base/excerpt.ts";

export interface CustomColumn {
  readonly header: string;
  readonly path: TemplatePath;
}

/** Parses `NAME:.metadata.name,STATE:.status.state` as kubectl does. @throws JsonPathError */
export function parseColumns(text: string): readonly CustomColumn[] {
  return (text.match(/(?:\[[^\]]*\]|[^,])+/g) ?? [""]).map((column) => {
    const [, header, expression] = /^([^:]*):(.*)$/s.exec(column) ?? [];
    if (header === undefined || expression === undefined) {
      throw new JsonPathError(`${excerpt(column)} is not a column; write HEADER:PATH, such as NAME:.metadata.name`);
    }
    const [, braced, bare] = /^(?:\{\.?([^{}]*)\}|\.?([^{}]*))$/s.exec(expression) ?? [];
    const path = braced ?? bare;
    if (path === undefined) {
      throw new JsonPathError(`${excerpt(expression)} is not a single path; write .metadata.name or {.metadata.name}`);
    }
    const [part] = parseTemplate(`{${path.startsWith("[") ? "" : "."}${path}}`);
    return { header, path: part !== undefined && "path" in part ? part.path : [] };
  });
}
