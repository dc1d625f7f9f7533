import {
  constructFromEvents,
  type DocumentEvent,
  EVENT_ID,
  type Event,
  getScalarValue,
  parseEvents,
  SCALAR_STYLE,
  YAMLException,
} from "js-yaml";
import type { Json } from "#shared/base/json.ts";
import { AliasMeter, maxAliasExpansion } from "#shared/source/yaml/alias-meter.ts";
import { explainYaml } from "#shared/source/yaml/explain-yaml.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { kubernetesSchema, kyamlSchema, unsupportedFloat } from "#shared/source/yaml/yaml-schema.ts";

/**
 * One document of a file. `document` counts from 1 and includes empty documents. `line` is where its content starts.
 */
export interface YamlDocument {
  readonly value: Json;
  readonly document: number;
  readonly line: number;
}

/** Nested deeper than any manifest, and shallower than any stack. */
const maxDepth = 100;
/**
 * The limit of one file. Each document takes some kilobytes while it is read, and three characters are enough for one.
 */
const maxDocuments = 50_000;

export interface ParseOptions {
  /**
   * The plain words that are booleans: those of YAML 1.1 (`yes`, `off`), as in kubectl, or only those of 1.2, as kustomize
   * reads files that are not kustomizations.
   */
  readonly booleans?: "1.1" | "1.2";
  /** Default: a duplicate key is refused. */
  readonly twice?: "last counts";
}

/**
 * Decodes every document of a YAML or JSON file to the value that kubectl (sigs.k8s.io/yaml) decodes it to. Empty and
 * null documents are skipped.
 *
 * All deviations lead to an error: a duplicate key is refused (in kubectl the last one counts), and so are a document
 * with excessive aliases and a file of more than 50,000 documents. Content on a `---` line is read, while kubectl drops
 * it. Integers between 2^53 and 2^64 are `bigint`; larger ones are floats, as in Go. Aliased nodes are shared, so that
 * the result must not be changed.
 * @throws ManifestError `InvalidYaml` with line and column.
 */
export function parseDocuments(text: string, file: string, options: ParseOptions = {}): YamlDocument[] {
  const events = readEvents(text, file);
  const offsets = inspect(events, text, file);
  const schema = options.booleans === "1.2" ? kyamlSchema : kubernetesSchema;
  const json = options.twice !== undefined;
  const values = withPlace({ text, file }, () =>
    constructFromEvents(events, { source: text, filename: file, schema, json }),
  );
  const lineAt = lineCounter(text);
  const documents: YamlDocument[] = [];
  for (const [index, value] of values.entries()) {
    if (value === null || value === undefined) continue;
    documents.push({ value: value as Json, document: index + 1, line: lineAt(offsets[index] ?? 0) });
  }
  return documents;
}

function readEvents(text: string, file: string): Event[] {
  requireFewDocuments(text, file);
  return withPlace({ text, file }, () => parseEvents(text, { filename: file, maxDepth }));
}

/**
 * Counts the document marks before the file is parsed. In valid YAML, only a line between documents begins with such a
 * mark.
 */
function requireFewDocuments(text: string, file: string): void {
  for (const mark of [/^---(?=\s|$)/gm, /^\.\.\.(?=\s|$)/gm]) {
    let count = 0;
    while (count <= maxDocuments && mark.test(text)) count += 1;
    if (count <= maxDocuments) continue;
    const reason = `has more than ${maxDocuments} documents, the limit of one file; split it`;
    throw new ManifestError("InvalidYaml", { file }, reason);
  }
}

function withPlace<Result>({ text, file }: Source, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const mark = error.mark;
    const place = mark === undefined ? { file } : { file, line: mark.line + 1, column: mark.column + 1 };
    throw new ManifestError("InvalidYaml", place, explainYaml(error.reason, text, mark?.position));
  }
}

/**
 * The characters that the aliases of a file add when they are expanded.
 * @throws ManifestError `InvalidYaml` for a text that is not YAML, and for aliases that expand too far.
 */
export function expansionOf(text: string, file: string): number {
  const events = readEvents(text, file);
  let meter = new AliasMeter();
  let expanded = 0;
  for (const event of events) {
    if (event.type === EVENT_ID.DOCUMENT) {
      expanded += meter.expanded;
      meter = new AliasMeter();
    } else measure(meter, event, { text, file });
  }
  return expanded + meter.expanded;
}

interface Source {
  readonly text: string;
  readonly file: string;
}

/** Refuses what js-yaml accepts and kubectl does not. Returns where each document's content starts. */
function inspect(events: readonly Event[], text: string, file: string): number[] {
  const json = isJsonText(text);
  const offsets: number[] = [];
  let meter = new AliasMeter();
  let contentStart: number | undefined;

  for (const event of events) {
    switch (event.type) {
      case EVENT_ID.DOCUMENT: {
        for (const directive of event.directives) {
          if (directive.kind !== "yaml" || directive.version === "1.1") continue;
          const reason = `%YAML ${directive.version} is not the version that kubectl reads (YAML 1.1); remove the directive`;
          throw refusal({ text, file }, text.indexOf(`%YAML`), reason);
        }
        meter = new AliasMeter();
        contentStart = undefined;
        break;
      }
      case EVENT_ID.MAPPING:
      case EVENT_ID.SEQUENCE: {
        contentStart ??= event.start;
        measure(meter, event, { text, file });
        break;
      }
      case EVENT_ID.SCALAR: {
        contentStart ??= event.valueStart;
        const value = getScalarValue(text, event);
        const raw = text.slice(event.valueStart, event.valueEnd);
        if (event.style === SCALAR_STYLE.PLAIN && event.tagStart < 0 && unsupportedFloat.test(value)) {
          const reason = `unsupported value: ${value}; JSON has no such number: put it in quotes if it is a text`;
          throw refusal({ text, file }, event.valueStart, reason);
        }
        if (event.style === SCALAR_STYLE.DOUBLE_QUOTED && !json && hasSurrogateEscape(raw)) {
          const reason = "invalid Unicode escape: write the character itself or \\U and eight digits";
          throw refusal({ text, file }, event.valueStart, reason);
        }
        measure(meter, event, { text, file });
        break;
      }
      case EVENT_ID.ALIAS: {
        contentStart ??= event.anchorStart - 1;
        measure(meter, event, { text, file });
        break;
      }
      case EVENT_ID.POP:
        if (!measure(meter, event, { text, file })) offsets.push(contentStart ?? 0);
    }
  }
  return offsets;
}

/** @returns false when the document ended. */
function measure(meter: AliasMeter, event: Exclude<Event, DocumentEvent>, source: Source): boolean {
  switch (event.type) {
    case EVENT_ID.MAPPING:
    case EVENT_ID.SEQUENCE:
      meter.enter(anchorOf(event, source.text));
      return true;
    case EVENT_ID.SCALAR:
      meter.scalar(anchorOf(event, source.text), getScalarValue(source.text, event).length);
      return true;
    case EVENT_ID.ALIAS: {
      const name = source.text.slice(event.anchorStart, event.anchorEnd);
      const problem = meter.alias(name);
      if (problem === "contains itself")
        throw refusal(source, event.anchorStart, `anchor ${name} contains itself; remove the alias inside it`);
      if (problem === undefined) return true;
      const reason = `aliases would expand to more than ${maxAliasExpansion} characters; use fewer aliases`;
      throw refusal(source, event.anchorStart, reason);
    }
    case EVENT_ID.POP:
      return meter.leave();
  }
}

function refusal({ text, file }: Source, offset: number, reason: string): ManifestError {
  return new ManifestError("InvalidYaml", { file, ...placeAt(text, offset) }, reason);
}

function anchorOf(
  event: { readonly anchorStart: number; readonly anchorEnd: number },
  text: string,
): string | undefined {
  return event.anchorStart < 0 ? undefined : text.slice(event.anchorStart, event.anchorEnd);
}

function hasSurrogateEscape(raw: string): boolean {
  return /(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]/.test(raw);
}

/** kubectl reads a file that starts with a brace as JSON, in which surrogate escapes are legal. */
function isJsonText(text: string): boolean {
  if (!/^\uFEFF?\s*\{/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function placeAt(text: string, offset: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, Math.max(0, offset));
  return { line: lineCounter(text)(offset), column: before.length - before.lastIndexOf("\n") };
}

/** A function from an offset to its line, counted from 1. The offsets must not decrease from call to call. */
function lineCounter(text: string): (offset: number) => number {
  let position = 0;
  let line = 1;
  return (offset) => {
    for (; position < offset; position++) if (text.charCodeAt(position) === 10) line++;
    return line;
  };
}
