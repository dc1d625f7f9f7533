import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import { ApiFailure } from "#cli/session/api-client.ts";
import { type ApplyPart, partsOf } from "#cli/session/apply-parts.ts";
import { confirmConsequences } from "#cli/session/confirm.ts";
import { CliFailure, type ExitReason } from "#cli/session/failure.ts";
import {
  type CheckedDocument,
  invalid,
  type ProblemInFile,
  readDocuments,
  reported,
} from "#cli/session/read-documents.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { quoted } from "#shared/base/shell-word.ts";

/** At most this many documents that were not written are named; the rest is counted. */
const reportedNames = 100;
/** Codes with which the API refuses a request before it writes the first document. */
const refusedWhole = new Set([
  "Invalid",
  "ConfirmationRequired",
  "Deleting",
  "Forbidden",
  "BadRequest",
  "BodyTooLarge",
]);

export interface ApplyCommandOptions {
  readonly filename: readonly string[];
  readonly recursive?: boolean;
  readonly dryRun: "none" | "client" | "server";
}

interface AppliedObject {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly outcome: string;
  readonly generation: number;
  readonly warnings: readonly string[];
}

interface ApplyAnswer {
  readonly items: readonly AppliedObject[];
  readonly consequences?: readonly { readonly message: string }[];
}

type Outcomes = Map<CheckedDocument, AppliedObject>;

/**
 * Checks every document here, then sends them to the API. Documents that are too many for one request are sent in parts.
 * All parts are checked before the first is written. When a later part fails, the command lists what was written and what was not.
 */
export async function apply(session: Session, options: ApplyCommandOptions): Promise<ExitReason> {
  const namespace = session.documentNamespace();
  const documents = await readDocuments(session.io, {
    paths: options.filename,
    folders: options.recursive === true ? "recursive" : "flat",
    ...defined({ namespace }),
  });
  if (options.dryRun === "client") {
    const items = documents.map(({ document: { kind, metadata } }) => ({
      kind,
      name: metadata.name,
      ...("namespace" in metadata ? { namespace: metadata.namespace } : {}),
      outcome: "valid",
      generation: 0,
      warnings: [],
    }));
    print(session, items, " (dry run, client)");
    return "done";
  }
  return sendDocuments(session, documents, { dryRun: options.dryRun, again: againText(session, options) });
}

export interface Applying {
  readonly dryRun: "none" | "server";
  /** The command that answers a question. */
  readonly again: string;
}

/** Sends checked documents and prints the results, as `starling apply` does. */
export async function sendDocuments(
  session: Session,
  documents: readonly CheckedDocument[],
  { dryRun, again }: Applying,
): Promise<ExitReason> {
  const parts = partsOf(documents);
  if (dryRun === "server") {
    const checked = await check(session, parts);
    for (const message of checked.consequences.values()) session.note(`would ask: ${message}`);
    const items = inOrder(documents, checked.outcomes);
    // A part may refer to a document of another part, which is not written in a dry run.
    const whole = parts.length > 1 ? items.map((item) => ({ ...item, warnings: [] })) : items;
    print(session, whole, " (dry run, server)");
    return "done";
  }
  session.announce();
  print(session, inOrder(documents, await write(session, { documents, parts, again })), "");
  return "done";
}

function againText(session: Session, { filename, recursive }: ApplyCommandOptions): string {
  const files = filename.map((path) => ` -f ${quoted(path)}`).join("");
  return `starling apply${files}${recursive === true ? " -R" : ""}${session.where()} --yes`;
}

interface Checked {
  readonly outcomes: Outcomes;
  /** The deletions that a part would cause. */
  readonly consequences: ReadonlyMap<ApplyPart, string>;
}

/** A dry run of all parts. @throws CliFailure with the problems of all of them. */
async function check(session: Session, parts: readonly ApplyPart[]): Promise<Checked> {
  const outcomes: Outcomes = new Map();
  const consequences = new Map<ApplyPart, string>();
  const refused: ApiFailure[] = [];
  const problems: ProblemInFile[] = [];
  let count = 0;
  for (const part of parts) {
    try {
      const answer = await request(session, part, { dryRun: true });
      for (const [index, item] of answer.items.entries()) outcomes.set(part[index] as CheckedDocument, item);
      if (answer.consequences !== undefined) {
        consequences.set(part, answer.consequences.map(({ message }) => message).join("\n"));
      }
    } catch (error) {
      if (!(error instanceof ApiFailure) || error.code !== "Invalid") throw error;
      refused.push(error);
      const found = placed(error, part);
      problems.push(...found);
      count += Number(error.body.problemCount ?? found.length);
    }
  }
  if (refused.length === 0) return { outcomes, consequences };
  const documents = parts.reduce((sum, part) => sum + part.length, 0);
  throw invalid({ lines: reported(problems), count }, documents);
}

async function write(session: Session, work: Omit<Writing, "confirmed">): Promise<Outcomes> {
  const { parts } = work;
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return writeParts(session, { ...work, confirmed: new Set() });
  session.note(`${work.documents.length} documents, in ${parts.length} parts`);
  const { consequences } = await check(session, parts);
  if (consequences.size > 0) {
    const message = [...consequences.values()].join("\n");
    await confirmConsequences(session, { message }, work.again);
  }
  return writeParts(session, { ...work, confirmed: new Set(consequences.keys()) });
}

interface Writing {
  readonly documents: readonly CheckedDocument[];
  readonly parts: readonly ApplyPart[];
  readonly confirmed: ReadonlySet<ApplyPart>;
  /** The command that answers the question. */
  readonly again: string;
}

async function writeParts(session: Session, writing: Writing): Promise<Outcomes> {
  const outcomes: Outcomes = new Map();
  for (const part of writing.parts) {
    try {
      const answer = await writePart(session, part, { confirm: writing.confirmed.has(part), again: writing.again });
      for (const [index, item] of answer.items.entries()) outcomes.set(part[index] as CheckedDocument, item);
    } catch (error) {
      throw await halfWritten(session, { ...writing, outcomes, part, error });
    }
  }
  return outcomes;
}

async function writePart(
  session: Session,
  part: ApplyPart,
  { confirm, again }: { readonly confirm: boolean; readonly again: string },
): Promise<ApplyAnswer> {
  try {
    return await request(session, part, { confirm });
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    if (error.code === "Invalid") {
      const problems = placed(error, part);
      throw invalid(
        { lines: reported(problems), count: Number(error.body.problemCount ?? problems.length) },
        part.length,
      );
    }
    if (error.code !== "ConfirmationRequired") throw error;
    await confirmConsequences(session, error, again);
    return request(session, part, { confirm: true });
  }
}

interface Failure extends Writing {
  readonly outcomes: Outcomes;
  readonly part: ApplyPart;
  readonly error: unknown;
}

/** Prints what was written and what was not, if the API answers. @returns the failure that ends the command. */
async function halfWritten(session: Session, failure: Failure): Promise<unknown> {
  const { documents, outcomes, part, error } = failure;
  const refused = error instanceof CliFailure && isRefusal(error);
  if (refused && outcomes.size === 0) return error;
  const there = refused ? new Map() : await writtenOf(session, part);
  for (const [document, item] of there ?? []) outcomes.set(document, item);
  print(session, inOrder(documents, outcomes), "");

  const left = documents.filter((document) => !outcomes.has(document));
  const unsure = there === undefined ? new Set(part) : new Set();
  const lines = left
    .slice(0, reportedNames)
    .map((document) => `${unsure.has(document) ? "perhaps not" : "not"} written: ${textOf(document)}`);
  if (left.length > reportedNames) lines.push(`and ${left.length - reportedNames} more`);
  // Ctrl-C and --timeout end the command in their own way.
  if (session.signal.aborted) {
    session.io.err(`${lines.join("\n")}\n`);
    return error;
  }
  const given = error instanceof CliFailure ? error : undefined;
  const message = `${outcomes.size} of ${documents.length} documents are written, ${left.length} are not: ${errorMessage(error)}`;
  return new CliFailure(message, {
    exit: given?.exit ?? "unknown",
    lines: [...(given?.lines ?? []), ...lines],
    next: "the same command again; it writes the rest",
  });
}

/** Whether the part was refused as a whole, or not sent: nothing of it was written. */
function isRefusal(error: CliFailure): boolean {
  return error instanceof ApiFailure ? refusedWhole.has(error.code) : error.exit !== "unknown";
}

/** The documents of a part that the API has now, or undefined when it does not answer. */
async function writtenOf(session: Session, part: ApplyPart): Promise<Outcomes | undefined> {
  try {
    const { items } = await request(session, part, { dryRun: true });
    const there = part.map((document, index) => [document, items[index] as AppliedObject] as const);
    return new Map(
      there
        .filter(([, item]) => item.outcome === "unchanged")
        .map(([document, item]) => [document, { ...item, outcome: "written" }]),
    );
  } catch {
    return undefined;
  }
}

function request(
  session: Session,
  part: ApplyPart,
  how: { readonly dryRun?: boolean; readonly confirm?: boolean },
): Promise<ApplyAnswer> {
  const { reason } = session.options;
  const body = {
    documents: part.map(({ document }) => document),
    ...how,
    ...defined({ reason }),
  };
  return session.api.call<ApplyAnswer>({ method: "POST", path: "/v1/apply", body });
}

/** The API's problems, at the documents they are about. */
function placed(error: ApiFailure, part: ApplyPart): readonly ProblemInFile[] {
  const problems = Array.isArray(error.body.problems) ? error.body.problems : [];
  return problems.flatMap((problem: { document: number; field: string; message: string }) => {
    const from = part[problem.document]?.from;
    return from === undefined ? [] : [{ from, field: problem.field, message: problem.message }];
  });
}

function inOrder(documents: readonly CheckedDocument[], outcomes: Outcomes): readonly AppliedObject[] {
  return documents.flatMap((document) => outcomes.get(document) ?? []);
}

function print(session: Session, items: readonly AppliedObject[], suffix: string): void {
  const { output } = session.options;
  for (const item of items) for (const warning of item.warnings) session.note(`warning: ${nameOf(item)}: ${warning}`);
  if (isData(output)) {
    session.io.out(serialise({ kind: "AppliedList", metadata: {}, items }, output));
    return;
  }
  for (const item of items) {
    session.io.out(output === "name" ? `${nameOf(item)}\n` : `${nameOf(item)} ${item.outcome}${suffix}\n`);
  }
}

function nameOf(item: Pick<AppliedObject, "kind" | "name">): string {
  return `${item.kind.toLowerCase()}/${item.name}`;
}

function textOf({ document }: CheckedDocument): string {
  return nameOf({ kind: document.kind, name: document.metadata.name });
}
