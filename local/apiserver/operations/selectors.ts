import type { JsonObject } from "#apiserver/json.ts";
import { labelsOf, valueAt } from "#apiserver/object-fields.ts";
import { badRequest } from "#apiserver/status-error.ts";

export type Predicate = (object: JsonObject) => boolean;

const labelValue = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
const labelValueMessage =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/** The error of a label value, if any. */
export function labelValueProblem(value: string): string | undefined {
  if (Buffer.byteLength(value) > 63) return "must be no more than 63 bytes";
  return labelValue.test(value) ? undefined : labelValueMessage;
}

function checkedValue(value: string, place: { readonly key: string; readonly index: number }): string {
  const problem = labelValueProblem(value);
  if (problem === undefined) return value;
  throw badRequest(
    `unable to parse requirement: values[${place.index}][${place.key}]: Invalid value: ${JSON.stringify(value)}: ${problem}`,
  );
}

function unexpected(found: string, expected: string): Error {
  return badRequest(`unable to parse requirement: found '${found}' expected: ${expected}`);
}

type LabelTest = (labels: Readonly<Record<string, string>>) => boolean;

interface Tokens {
  readonly words: readonly string[];
  index: number;
}

const tokenPattern = /\s*(==|!=|=|!|>|<|\(|\)|,|[^\s=!<>(),]+)/gy;

/**
 * Parses a label selector: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`. Inequalities match objects without the label.
 * @throws StatusError 400.
 */
export function parseLabelSelector(selector: string): Predicate {
  const words = [...selector.matchAll(tokenPattern)].map((match) => match[1] ?? "");
  const tokens: Tokens = { words, index: 0 };
  const tests: LabelTest[] = [];
  while (tokens.index < words.length) {
    tests.push(parseRequirement(tokens));
    const comma = words[tokens.index];
    if (comma === undefined) break;
    if (comma !== ",") throw unexpected(comma, "',' or 'end of string'");
    tokens.index += 1;
  }
  return (object) => {
    const labels = labelsOf(object);
    return tests.every((test) => test(labels));
  };
}

function next(tokens: Tokens): string {
  const word = tokens.words[tokens.index] ?? "";
  tokens.index += 1;
  return word;
}

const punctuation = new Set(["", "=", "==", "!=", "!", ">", "<", "(", ")", ","]);

function parseRequirement(tokens: Tokens): LabelTest {
  const first = next(tokens);
  if (first === "!") {
    const absent = next(tokens);
    if (punctuation.has(absent)) throw unexpected(absent, "identifier");
    return (labels) => labels[absent] === undefined;
  }
  if (punctuation.has(first)) throw unexpected(first, "!, identifier, or 'end of string'");
  const operator = tokens.words[tokens.index];
  if (operator === undefined || operator === ",") return (labels) => labels[first] !== undefined;
  tokens.index += 1;
  if (operator === "in" || operator === "notin") {
    const values = new Set(parseValues(tokens).map((value, index) => checkedValue(value, { key: first, index })));
    if (operator === "in") return (labels) => values.has(labels[first] ?? "\u0000");
    return (labels) => !values.has(labels[first] ?? "\u0000");
  }
  if (operator === ">" || operator === "<") {
    const bound = Number(next(tokens));
    return (labels) => {
      const value = Number.parseInt(labels[first] ?? "", 10);
      return operator === ">" ? value > bound : value < bound;
    };
  }
  const peek = tokens.words[tokens.index];
  const value = checkedValue(peek === undefined || peek === "," ? "" : next(tokens), { key: first, index: 0 });
  if (operator === "=" || operator === "==") return (labels) => labels[first] === value;
  if (operator === "!=") return (labels) => labels[first] !== value;
  throw unexpected(operator, "in, notin, =, ==, !=, gt, lt");
}

function parseValues(tokens: Tokens): string[] {
  const open = next(tokens);
  if (open !== "(") throw unexpected(open, "'('");
  const values: string[] = [];
  let afterComma = true;
  for (;;) {
    const word = next(tokens);
    if (word === ")") {
      if (afterComma) values.push("");
      return values;
    }
    if (word === ",") {
      if (afterComma) values.push("");
      afterComma = true;
    } else if (word === "") {
      throw unexpected("", "',', or ')'");
    } else {
      values.push(word);
      afterComma = false;
    }
  }
}

const commonFields = ["metadata.name", "metadata.namespace"];

/** The field selectors of each resource beyond name and namespace. */
const selectableFields: Readonly<Record<string, readonly string[]>> = {
  "/pods": [
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.phase",
    "status.podIP",
    "spec.hostNetwork",
    "status.nominatedNodeName",
  ],
  "/secrets": ["type"],
  "/namespaces": ["status.phase"],
  "/nodes": ["spec.unschedulable"],
  "/services": ["spec.clusterIP", "spec.type"],
  "/events": [
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
  ],
  "apps/replicasets": ["status.replicas"],
  "batch/jobs": ["status.successful"],
};

/** Parses a field selector: `metadata.name=a,metadata.namespace!=b`. @throws StatusError 400. */
export function parseFieldSelector(
  selector: string,
  resource: { readonly key: string; readonly custom: boolean },
): Predicate {
  const tests: Predicate[] = [];
  for (const term of selector.split(",")) {
    if (term === "") continue;
    const match = /^([^=!]+)(==|!=|=)(.*)$/.exec(term);
    if (match === null) throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`);
    const [, field = "", operator, value = ""] = match;
    checkField(field, resource);
    tests.push((object) => {
      const found = valueAt(object, ...field.split("."));
      return (String(found ?? "") === value) === (operator !== "!=");
    });
  }
  return (object) => tests.every((test) => test(object));
}

function checkField(field: string, resource: { readonly key: string; readonly custom: boolean }): void {
  const more = selectableFields[resource.key];
  if (commonFields.includes(field) || more?.includes(field)) return;
  if (resource.custom || more !== undefined) throw badRequest(`field label not supported: ${field}`);
  throw badRequest(
    `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
  );
}
