import { isJsonObject, type Json, type JsonObject } from "#apiserver/json.ts";
import { listAt, stringAt } from "#apiserver/object-fields.ts";
import { labelErrors, labelKeyProblem } from "#apiserver/operations/object-meta.ts";
import { labelValueProblem } from "#apiserver/operations/selectors.ts";
import { type FieldError, fieldErrors } from "#apiserver/status-error.ts";

/** The errors of a LabelSelector (ValidateLabelSelector). */
export function labelSelectorErrors(selector: Json | undefined, field: string): FieldError[] {
  if (!isJsonObject(selector)) return [];
  const labels = isJsonObject(selector.matchLabels) ? selector.matchLabels : {};
  return [
    ...labelErrors(labels as Readonly<Record<string, string>>, `${field}.matchLabels`),
    ...listAt(selector, "matchExpressions").flatMap((each, index) =>
      requirementErrors(each, `${field}.matchExpressions[${index}]`),
    ),
  ];
}

function requirementErrors(requirement: Json, at: string): FieldError[] {
  const operator = stringAt(requirement, "operator") ?? "";
  const key = stringAt(requirement, "key") ?? "";
  const values = listAt(requirement, "values");
  const errors: FieldError[] = [];
  if (operator === "In" || operator === "NotIn") {
    if (values.length === 0)
      errors.push(fieldErrors.required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
  } else if (operator === "Exists" || operator === "DoesNotExist") {
    const detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
    if (values.length > 0) errors.push(fieldErrors.forbidden(`${at}.values`, detail));
  } else {
    errors.push(fieldErrors.invalid(`${at}.operator`, operator, "not a valid selector operator"));
  }
  const keyProblem = labelKeyProblem(key);
  if (keyProblem !== undefined) errors.push(fieldErrors.invalid(`${at}.key`, key, keyProblem));
  for (const [index, value] of values.entries()) {
    const problem = labelValueProblem(String(value));
    if (problem !== undefined) errors.push(fieldErrors.invalid(`${at}.values[${index}]`, value, problem));
  }
  return errors;
}

/** Whether labels match every part of a LabelSelector; undefined where the selector is invalid. */
export function selectorMatches(selector: JsonObject, labels: Json | undefined): boolean | undefined {
  const given = isJsonObject(labels) ? labels : {};
  const desired = isJsonObject(selector.matchLabels) ? selector.matchLabels : {};
  let matches = Object.entries(desired).every(([key, value]) => given[key] === value);
  for (const requirement of listAt(selector, "matchExpressions")) {
    if (requirementErrors(requirement, "").length > 0) return undefined;
    const value = given[stringAt(requirement, "key") ?? ""];
    const isIn = value !== undefined && listAt(requirement, "values").includes(value);
    const holds: Readonly<Record<string, boolean>> = {
      In: isIn,
      NotIn: !isIn,
      Exists: value !== undefined,
      DoesNotExist: value === undefined,
    };
    matches &&= holds[stringAt(requirement, "operator") ?? ""] === true;
  }
  return matches;
}
