import {
  type Filter,
  JsonPathError,
  type Operator,
  type Slice,
  type Template,
  type TemplatePath,
  type TemplateStep,
} from "#cli/output/template.ts";
import { excerptOf } from "#shared/base/excerpt.ts";
import { isJsonObject, stringifyJson } from "#shared/base/json.ts";

type Values = readonly unknown[];

/** A missing field gives an empty text. @throws JsonPathError for an index beyond a list, or on a value that is not a list. */
export function evaluateTemplate(template: Template, value: unknown): string {
  return template
    .map((part) => {
      if ("text" in part) return part.text;
      if ("path" in part) return valuesAt(part.path, [value]).map(textOf).join(" ");
      return valuesAt(part.each, [value])
        .map((each) => evaluateTemplate(part.body, each))
        .join("");
    })
    .join("");
}

export function valuesAt(path: TemplatePath, input: Values): Values {
  return path.reduce<Values>((values, step) => valuesOf(step, values), input);
}

/** A text as it is, every other value as JSON. */
function textOf(value: unknown): string {
  return typeof value === "string" ? value : stringifyJson(value);
}

function valuesOf(step: TemplateStep, input: Values): Values {
  switch (step.kind) {
    case "literal":
      return typeof step.value === "string" ? [step.value] : input.map(() => step.value);
    case "field":
      return input.flatMap((value) =>
        isJsonObject(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : [],
      );
    case "all":
      return input.flatMap(childrenOf);
    case "descent":
      return input.flatMap(withAllBelow);
    case "union":
      return step.paths.flatMap((path) => valuesAt(path, input));
    case "slice":
      return listsOf(input, "cannot be indexed").flatMap((list) => sliceOf(list, step.slice));
    case "filter":
      return listsOf(input, "cannot be filtered").flatMap((list) => list.filter((item) => passes(step.filter, item)));
  }
}

function childrenOf(value: unknown): Values {
  if (Array.isArray(value)) return value;
  return isJsonObject(value) ? Object.values(value) : [];
}

function withAllBelow(value: unknown): Values {
  if (typeof value === "string") return value === "" ? [] : [value];
  const children = childrenOf(value);
  return children.length === 0 ? [] : [value, ...children.flatMap(withAllBelow)];
}

function listsOf(input: Values, problem: string): readonly Values[] {
  return input.flatMap((value) => {
    if (value === null || value === undefined) return [];
    if (Array.isArray(value)) return [value];
    const what = isJsonObject(value) ? "an object" : `a ${typeof value}`;
    throw new JsonPathError(
      `${what} ${problem}, only a list can; write .NAME for a field, or .items[*] for the items of a list`,
    );
  });
}

function sliceOf(list: Values, slice: Slice): Values {
  const { length } = list;
  const { from, to, step } = "index" in slice ? { from: slice.index, to: undefined, step: 1 } : { step: 1, ...slice };
  const first = (from ?? 0) < 0 ? length + (from ?? 0) : (from ?? 0);
  const desired = "index" in slice ? first + 1 : (to ?? length);
  const end = desired < 0 ? length + desired : desired;
  if (first === end) return [];
  if (first < 0 || first >= length) throw beyond(from ?? 0, length);
  if (end < 0 || end > length) throw beyond(to ?? 0, length);
  if (first > end)
    throw new JsonPathError(`a slice ends before it begins (${first}:${end}); write the smaller one first`);
  return list.slice(first, end).filter((_item, at) => at % (step ?? 1) === 0);
}

function beyond(index: number, length: number): JsonPathError {
  return new JsonPathError(
    `${index} is beyond a list of ${length}; write [*] for all items, or a filter such as [?(@.name)]`,
  );
}

function passes({ left, compared }: Filter, item: unknown): boolean {
  const found = valuesAt(left, [item]);
  if (compared === undefined) return found.length > 0;
  const desired = valuesAt(compared.right, [item]);
  if (found.length > 1 || desired.length > 1) {
    throw new JsonPathError("a filter compares one value with one other; write an index instead of [*] in it");
  }
  return found.length === 1 && desired.length === 1 && compare(found[0], { ...compared, right: desired[0] });
}

/** Compares two numbers, two texts or two booleans. Like kubectl, it compares nothing else. */
function compare(
  left: unknown,
  { operator, right }: { readonly operator: Operator; readonly right: unknown },
): boolean {
  const [one, other] = [comparable(left), comparable(right)];
  if (one === undefined || other === undefined || typeof one !== typeof other) {
    throw new JsonPathError(
      `a filter cannot compare ${excerptOf(left)} with ${excerptOf(right)}; put a text in "..."; write numbers, true and false without quotes`,
    );
  }
  if (operator === "==" || operator === "!=") return (one === other) === (operator === "==");
  if (operator === "<" || operator === "<=") return one < other || (operator === "<=" && one === other);
  return one > other || (operator === ">=" && one === other);
}

function comparable(value: unknown): string | number | boolean | undefined {
  if (typeof value === "bigint") return Number(value);
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : undefined;
}
