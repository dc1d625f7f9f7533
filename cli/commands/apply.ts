import { ApiFailure } from "#cli/api-client.ts";
import { confirmConsequences } from "#cli/confirm.ts";
import { type ExitReason, usageFailure } from "#cli/failure.ts";
import { serialise } from "#cli/format/serialise.ts";
import { checkFileDocuments, type FileDocument, invalid, problemLine, readDocuments } from "#cli/read-documents.ts";
import type { Session } from "#cli/session.ts";
import { stringifyJson } from "#shared/domain/json.ts";
import type { Document } from "#shared/domain/kinds/document.ts";

/** One request holds so much of the API's 1,000,000 bytes. */
const REQUEST_BYTES = 900_000;

export interface ApplyOptions {
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

/** Checks every document here first, then asks the API; nothing is written when one of them is wrong. */
export async function apply(session: Session, options: ApplyOptions): Promise<ExitReason> {
  const files = await readDocuments(session.io, {
    paths: options.filename,
    folders: options.recursive === true ? "recursive" : "flat",
    ...namespaceFor(session, options),
  });
  const documents = checkFileDocuments(files);
  refuseOtherNamespace(session, documents);
  if (options.dryRun === "client") {
    const items = documents.map((document) => ({
      ...referenceOf(document),
      outcome: "valid",
      generation: 0,
      warnings: [],
    }));
    print(session, items, " (dry run, client)");
    return "done";
  }
  const parts = partsOf(documents, files);
  if (options.dryRun === "server") {
    const items = await send(session, parts, { dryRun: true });
    print(session, items, " (dry run, server)");
    return "done";
  }
  session.announce();
  if (parts.length > 1) await send(session, parts, { dryRun: true });
  print(session, await send(session, parts, { dryRun: false }), "");
  return "done";
}

interface Part {
  readonly documents: readonly Document[];
  readonly files: readonly FileDocument[];
}

async function send(
  session: Session,
  parts: readonly Part[],
  { dryRun }: { readonly dryRun: boolean },
): Promise<readonly AppliedObject[]> {
  const items: AppliedObject[] = [];
  for (const part of parts) {
    const body = { documents: part.documents, dryRun, ...reasonOf(session) };
    const answer = await request(session, part, body);
    for (const { message } of answer.consequences ?? []) session.note(`would ask: ${message}`);
    items.push(...answer.items);
  }
  return items;
}

async function request(session: Session, part: Part, body: Readonly<Record<string, unknown>>): Promise<ApplyAnswer> {
  try {
    return await session.api.call<ApplyAnswer>({ method: "POST", path: "/v1/apply", body });
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    if (error.code === "Invalid") throw placed(error, part);
    if (error.code !== "ConfirmationRequired") throw error;
    await confirmConsequences(session, error, "starling apply ... --yes");
    return session.api.call<ApplyAnswer>({ method: "POST", path: "/v1/apply", body: { ...body, confirm: true } });
  }
}

/** The API's problems, at their lines. */
function placed(error: ApiFailure, part: Part): Error {
  const problems = Array.isArray(error.body.problems) ? error.body.problems : [];
  const lines = problems.map((problem: { document: number; field: string; message: string }) => {
    const file = part.files[problem.document];
    return file === undefined ? `${problem.field} ${problem.message}` : problemLine(file, problem);
  });
  return invalid(lines, part.files.length);
}

function partsOf(documents: readonly Document[], files: readonly FileDocument[]): readonly Part[] {
  const parts: { documents: Document[]; files: FileDocument[] }[] = [];
  let bytes = 0;
  for (const [index, document] of documents.entries()) {
    const size = Buffer.byteLength(stringifyJson(document)) + 1;
    let part = parts.at(-1);
    if (part === undefined || bytes + size > REQUEST_BYTES) {
      part = { documents: [], files: [] };
      parts.push(part);
      bytes = 0;
    }
    bytes += size;
    part.documents.push(document);
    part.files.push(files[index] as FileDocument);
  }
  return parts;
}

function print(session: Session, items: readonly AppliedObject[], suffix: string): void {
  const { output } = session.options;
  for (const item of items) for (const warning of item.warnings) session.note(`warning: ${nameOf(item)}: ${warning}`);
  if (output === "json" || output === "yaml") {
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

function referenceOf(document: Document): Pick<AppliedObject, "kind" | "namespace" | "name"> {
  const { kind, metadata } = document;
  return { kind, name: metadata.name, ...("namespace" in metadata ? { namespace: metadata.namespace } : {}) };
}

/** Only `-n` and the context fill in a namespace; without either, a document that names none is a problem of its own. */
function namespaceFor(session: Session, options: ApplyOptions): { namespace?: string } {
  if (session.options.namespace !== undefined) return { namespace: session.options.namespace };
  if (options.dryRun === "client") return {};
  const namespace = session.contextNamespace();
  return namespace === undefined ? {} : { namespace };
}

function refuseOtherNamespace(session: Session, documents: readonly Document[]): void {
  const wanted = session.options.namespace;
  if (wanted === undefined) return;
  for (const { kind, metadata } of documents) {
    if (!("namespace" in metadata) || metadata.namespace === wanted) continue;
    throw usageFailure(
      `${kind}/${metadata.name} is of namespace ${metadata.namespace}, and -n says ${wanted}`,
      `leave -n out, or change metadata.namespace`,
    );
  }
}

function reasonOf(session: Session): { reason?: string } {
  return session.options.reason === undefined ? {} : { reason: session.options.reason };
}
