import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { CliFailure, usageFailure } from "#cli/session/failure.ts";
import { type ForeignHelp, foreignHelp } from "#cli/session/foreign-documents.ts";
import type { CliIo } from "#cli/session/io.ts";
import { hasNamespace } from "#cli/session/kind-names.ts";
import { trustedRootProblems } from "#shared/adapters/signatures/trust-material.ts";
import { defined } from "#shared/base/defined.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { isJsonObject, type Json } from "#shared/base/json.ts";
import { withoutServerFields } from "#shared/fleet/api/exported.ts";
import { type Document, type FieldProblem, parseDocument } from "#shared/fleet/kinds/document.ts";
import { semanticProblems } from "#shared/fleet/kinds/semantics.ts";
import { cycleProblems } from "#shared/fleet/sources/include-cycle.ts";
import { type LineOf, lineFinder } from "#shared/source/yaml/line-finder.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

/** A folder with more files is probably the wrong folder. */
const maxFiles = 5000;
const extensions = /\.(ya?ml|json)$/;
/** The schema that `starling init` writes for editors is not a document. */
const schemaName = /\.schema\.json$/;

/** The namespace for documents without one. If `-n` sets it, a document with another namespace is refused. */
export interface DocumentNamespace {
  readonly name: string;
  readonly saidBy: "flag" | "context";
}

export interface FileRequest {
  /** Files, folders, or `-` for standard input. */
  readonly paths: readonly string[];
  readonly folders: "flat" | "recursive";
  readonly namespace?: DocumentNamespace;
}

/** One document of a file, and its place. */
export interface FileDocument {
  readonly value: Json;
  readonly file: string;
  readonly lineOf: LineOf;
  /** Counted from 1 within the file. */
  readonly document: number;
  /** Its path inside a list document. */
  readonly within: readonly (string | number)[];
}

/** A valid document, and its place in a file. */
export interface CheckedDocument {
  readonly document: Document;
  readonly from: FileDocument;
}

/**
 * Reads every document of the files in order, and checks it with the API's rules. Lists are split into their items.
 * @throws CliFailure with file, line, field and remedy of the problems of all files.
 */
export async function readDocuments(io: CliIo, request: FileRequest): Promise<readonly CheckedDocument[]> {
  const documents: FileDocument[] = [];
  const unreadable: string[] = [];
  for (const { file, text } of await readFiles(io, request)) {
    const lineOf = lineFinder(text);
    try {
      for (const { value, document } of parseDocuments(text, file)) {
        documents.push(...takeApart({ value, file, lineOf, document, within: [] }));
      }
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      const { line, column } = error.place;
      unreadable.push(
        `${file}${line === undefined ? "" : `:${line}`}${column === undefined ? "" : `:${column}`}: ${error.reason}`,
      );
    }
  }
  if (documents.length === 0 && unreadable.length === 0) {
    const where = request.paths.join(", ");
    throw new CliFailure(`there is no document in ${where}`, {
      exit: "wrongInput",
      next: mayHaveMore(io, request) ? "add -R to read subfolders" : "starling init   (writes an example fleet)",
    });
  }
  const checked: CheckedDocument[] = [];
  const problems: ProblemInFile[] = [];
  for (const given of documents) {
    const from = withNamespace(given, request.namespace?.name);
    const parsed = parseDocument(withoutServerFields(from.value));
    const found = parsed.ok ? await problemsOf(parsed.document, request) : parsed.problems;
    for (const problem of found) problems.push({ from, ...problem });
    if (parsed.ok) checked.push({ document: parsed.document, from });
  }
  problems.push(...duplicates(checked), ...cycles(checked));
  const count = problems.length + unreadable.length;
  if (count === 0) return checked;
  const help = foreignHelp(documents, io.cwd);
  throw invalid(
    { lines: [...unreadable, ...reported(problems)], count, ...defined({ help }) },
    documents.length + unreadable.length,
  );
}

function mayHaveMore(io: CliIo, { paths, folders }: FileRequest): boolean {
  return folders === "flat" && paths.some((path) => path !== "-" && statSync(resolve(io.cwd, path)).isDirectory());
}

export interface ProblemInFile extends FieldProblem {
  readonly from: FileDocument;
}

/** At most this many problems are printed; the line numbers of others are not looked up. */
const reportedProblems = 100;

/** The lines of the first problems. */
export function reported(problems: readonly ProblemInFile[]): readonly string[] {
  return problems.slice(0, reportedProblems).map((problem) => problemLine(problem.from, problem));
}

async function problemsOf(document: Document, { namespace }: FileRequest): Promise<readonly FieldProblem[]> {
  const { metadata } = document;
  const problems = [...semanticProblems(document), ...(await trustedRootProblems(document))];
  if (namespace?.saidBy !== "flag" || !("namespace" in metadata) || metadata.namespace === namespace.name)
    return problems;
  const message = `is ${metadata.namespace}, but -n is ${namespace.name}; omit -n, or change one of them`;
  return [...problems, { field: "metadata.namespace", message }];
}

function duplicates(checked: readonly CheckedDocument[]): readonly ProblemInFile[] {
  const problems: ProblemInFile[] = [];
  const seen = new Map<string, FileDocument>();
  for (const { document, from } of checked) {
    const { kind, metadata } = document;
    const key = `${kind} ${"namespace" in metadata ? `${metadata.namespace}/` : ""}${metadata.name}`;
    const first = seen.get(key);
    if (first === undefined) {
      seen.set(key, from);
      continue;
    }
    const message = `is the same object as in ${placeOf(first, ["metadata", "name"])}; remove one of them`;
    problems.push({ from, field: "metadata.name", message });
  }
  return problems;
}

function cycles(checked: readonly CheckedDocument[]): readonly ProblemInFile[] {
  return cycleProblems(checked.map(({ document }) => document)).flatMap(({ document, ...problem }) => {
    const from = checked[document]?.from;
    return from === undefined ? [] : [{ from, ...problem }];
  });
}

/** `shop.yaml:12: SyncGroup/shop: spec.rollout.maxFailures must not be negative (got -1)` */
export function problemLine(document: FileDocument, problem: FieldProblem): string {
  const place = placeOf(document, pathOfField(document.value, problem.field));
  const field = problem.field === "" ? "" : `${problem.field} `;
  return `${place}: ${objectName(document.value)}${field}${problem.message}`;
}

/** The failure of invalid documents: the lines of the first problems, and the number of all. */
export function invalid(
  problems: { readonly lines: readonly string[]; readonly count: number; readonly help?: ForeignHelp },
  documents: number,
): CliFailure {
  const { lines, count, help } = problems;
  const more = count > lines.length ? [`and ${count - lines.length} more`] : [];
  const message = `${count} ${count === 1 ? "problem" : "problems"} in ${documents} ${documents === 1 ? "document" : "documents"}`;
  return new CliFailure(`${message}; nothing was applied`, {
    exit: "wrongInput",
    lines: [...lines, ...more, ...(help?.lines ?? [])],
    next: help?.next ?? "correct the lines above, then: starling validate -f FILE",
  });
}

async function readFiles(io: CliIo, request: FileRequest): Promise<readonly { file: string; text: string }[]> {
  const files: { file: string; text: string }[] = [];
  for (const path of request.paths) {
    if (path === "-") {
      files.push({ file: "stdin", text: await io.readInput() });
      continue;
    }
    for (const file of expand(resolve(io.cwd, path), request)) {
      if (files.length >= maxFiles) {
        throw usageFailure(`more than ${maxFiles} files below ${path}`, "name a smaller folder with -f");
      }
      files.push({ file: relative(io.cwd, file) || file, text: readFileSync(file, "utf8") });
    }
  }
  return files;
}

function expand(path: string, request: FileRequest): readonly string[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined)
    throw usageFailure(`${path} does not exist`, "-f FILE, -f FOLDER, or -f - for standard input");
  if (!stat.isDirectory()) return [path];
  const found: string[] = [];
  const entries = readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const isDocument = extensions.test(entry.name) && !schemaName.test(entry.name);
    if (entry.isFile() && isDocument) found.push(join(path, entry.name));
    const hidden = entry.name.startsWith(".") || entry.name === "node_modules";
    if (entry.isDirectory() && request.folders === "recursive" && !hidden) {
      found.push(...expand(join(path, entry.name), request));
    }
  }
  return found;
}

function takeApart(document: FileDocument): readonly FileDocument[] {
  const { value } = document;
  if (!isJsonObject(value) || typeof value.kind !== "string" || !value.kind.endsWith("List")) return [document];
  if (!Array.isArray(value.items)) return [document];
  return value.items.map((item: Json, index) => ({ ...document, value: item, within: ["items", index] }));
}

function withNamespace(document: FileDocument, namespace: string | undefined): FileDocument {
  const { value } = document;
  if (namespace === undefined || !isJsonObject(value) || !hasNamespace(String(value.kind))) return document;
  if (!isJsonObject(value.metadata) || value.metadata.namespace !== undefined) return document;
  return { ...document, value: { ...value, metadata: { ...value.metadata, namespace } } };
}

function placeOf(document: FileDocument, path: readonly (string | number)[]): string {
  const line = document.lineOf(document.document, [...document.within, ...path]);
  return `${document.file}:${line}`;
}

function objectName(value: Json): string {
  if (!isJsonObject(value) || typeof value.kind !== "string") return "";
  const { kind, metadata } = value;
  const name = isJsonObject(metadata) && typeof metadata.name === "string" ? `/${excerpt(metadata.name)}` : "";
  return `${excerpt(kind)}${name}: `;
}

/** The steps of `spec.templates[0].path`. Keys may contain dots, so that the keys of the value decide. */
function pathOfField(value: unknown, field: string): readonly (string | number)[] {
  const path: (string | number)[] = [];
  let rest = field;
  let at: unknown = value;
  while (rest !== "") {
    const index = /^\[(\d+)\]\.?/.exec(rest);
    if (index !== null) {
      path.push(Number(index[1]));
      at = Array.isArray(at) ? at[Number(index[1])] : undefined;
      rest = rest.slice(index[0].length);
      continue;
    }
    const known = isJsonObject(at) ? Object.keys(at).filter((key) => rest === key || isStep(rest, key)) : [];
    const key = known.sort((a, b) => b.length - a.length)[0] ?? /^[^.[]+/.exec(rest)?.[0] ?? rest;
    path.push(key);
    at = isJsonObject(at) ? at[key] : undefined;
    rest = rest.slice(key.length).replace(/^\./, "");
  }
  return path;
}

function isStep(rest: string, key: string): boolean {
  return rest.startsWith(key) && (rest[key.length] === "." || rest[key.length] === "[");
}
