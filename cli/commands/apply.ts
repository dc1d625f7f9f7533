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
  readonly guardHash?: readonly string[];
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
  readonly consequences?: readonly Consequence[];
}

interface Consequence {
  readonly message: string;
  /** The change is more than a guard allows. `--yes` does not approve it, and this hash does. */
  readonly guardHash?: string;
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
  const { dryRun, guardHash = [] } = options;
  return sendDocuments(session, documents, { dryRun, guardHashes: guardHash, again: againText(session, options) });
}

export interface Applying {
  readonly dryRun: "none" | "server";
  /** Hashes of changes that pass a guard. */
  readonly guardHashes?: readonly string[];
  /** The command that answers a question. */
  readonly again: string;
}

/** Sends checked documents and prints the results, as `starling apply` does. */
export async function sendDocuments(
  session: Session,
  documents: readonly CheckedDocument[],
  { dryRun, again, guardHashes = [] }: Applying,
): Promise<ExitReason> {
  const parts = partsOf(documents);
  if (dryRun === "server") {
    const checked = await check(session, parts);
    for (const asked of checked.consequences.values()) session.note(`would ask: ${messageOf(asked)}`);
    const items = inOrder(documents, checked.outcomes);
    // A part may refer to a document of another part, which is not written in a dry run.
    const whole = parts.length > 1 ? items.map((item) => ({ ...item, warnings: [] })) : items;
    print(session, whole, " (dry run, server)");
    return "done";
  }
  session.announce();
  print(session, inOrder(documents, await write(session, { documents, parts, again, guardHashes })), "");
  return "done";
}

function againText(session: Session, { filename, recursive }: ApplyCommandOptions): string {
  const files = filename.map((path) => ` -f ${quoted(path)}`).join("");
  return `starling apply${files}${recursive === true ? " -R" : ""}${session.where()} --yes`;
}

interface Checked {
  readonly outcomes: Outcomes;
  /** The deletions that a part would cause. */
  readonly consequences: ReadonlyMap<ApplyPart, readonly Consequence[]>;
}

/** A dry run of all parts. @throws CliFailure with the problems of all of them. */
async function check(session: Session, parts: readonly ApplyPart[]): Promise<Checked> {
  const outcomes: Outcomes = new Map();
  const consequences = new Map<ApplyPart, readonly Consequence[]>();
  const refused: ApiFailure[] = [];
  const problems: ProblemInFile[] = [];
  let count = 0;
  for (const part of parts) {
    try {
      const answer = await request(session, part, { dryRun: true });
      for (const [index, item] of answer.items.entries()) outcomes.set(part[index] as CheckedDocument, item);
      if (answer.consequences !== undefined) {
        consequences.set(part, answer.consequences);
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
    const guardHashes = await confirmed(session, [...consequences.values()].flat(), work);
    return writeParts(session, { ...work, guardHashes, confirmed: new Set(consequences.keys()) });
  }
  return writeParts(session, { ...work, confirmed: new Set() });
}

interface Writing {
  readonly documents: readonly CheckedDocument[];
  readonly parts: readonly ApplyPart[];
  readonly confirmed: ReadonlySet<ApplyPart>;
  readonly guardHashes: readonly string[];
  /** The command that answers the question. */
  readonly again: string;
}

/**
 * Asks about the consequences. A person who answers has seen what passes the guards; `--yes` passes only what
 * `--guard-hash` names. @returns the hashes of what passes.
 */
async function confirmed(
  session: Session,
  asked: readonly Consequence[],
  { again, guardHashes }: Pick<Writing, "again" | "guardHashes">,
): Promise<readonly string[]> {
  const hashes = asked.flatMap(({ guardHash }) => guardHash ?? []);
  const missing = hashes.filter((hash) => !guardHashes.includes(hash));
  if (missing.length === 0 && hashes.length === asked.length) return guardHashes;
  const next = `${again}${hashes.map((hash) => ` --guard-hash ${hash}`).join("")}`;
  if (missing.length > 0 && session.options.yes === true) {
    session.io.err(`${messageOf(asked)}\n`);
    throw new CliFailure("a guard withholds the change, and --yes does not pass it", { exit: "no", next });
  }
  await confirmConsequences(session, { message: messageOf(asked) }, next);
  return hashes;
}

function messageOf(asked: readonly Consequence[]): string {
  return asked.map(({ message }) => message).join("\n");
}

async function writeParts(session: Session, writing: Writing): Promise<Outcomes> {
  const outcomes: Outcomes = new Map();
  for (const part of writing.parts) {
    try {
      const answer = await writePart(session, part, writing);
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
  writing: Pick<Writing, "confirmed" | "again" | "guardHashes">,
): Promise<ApplyAnswer> {
  const { guardHashes } = writing;
  try {
    return await request(session, part, { confirm: writing.confirmed.has(part), guardHashes });
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
    const { consequences = [{ message: error.message }] } = error.body as Pick<ApplyAnswer, "consequences">;
    return request(session, part, { confirm: true, guardHashes: await confirmed(session, consequences, writing) });
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
  how: { readonly dryRun?: boolean; readonly confirm?: boolean; readonly guardHashes?: readonly string[] },
): Promise<ApplyAnswer> {
  const { reason } = session.options;
  const { guardHashes = [], ...asked } = how;
  const body = {
    documents: part.map(({ document }) => document),
    ...asked,
    // An API of the version before does not know the field.
    ...(guardHashes.length === 0 ? {} : { guardHashes }),
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
