import * as z from "zod";
import { fittingItems } from "#functions/api/request/answer-size.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { allPages } from "#shared/base/all-pages.ts";
import { boundedText } from "#shared/base/bounded.ts";
import { defined } from "#shared/base/defined.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { type LabelSelector, matchesSelector } from "#shared/fleet/kinds/cluster-selection.ts";
import { parseSelectorText } from "#shared/fleet/kinds/selector-text.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import type { Newer, RowRead, RowType } from "#shared/fleet/rows/stored-row.ts";
import type { Page, RowQuery, Table } from "#shared/ports.ts";

const defaultLimit = 500;
const maxLimit = 1000;
/** Reads for one answer; a selector with few matches returns fewer items and a token. */
const readsPerAnswer = 20;
/** Bytes: the largest objects reach 30 MB, and many times that in memory. */
const rowsPerRead = 100;

export interface PageRequest {
  readonly limit: number;
  /** Content of `continue`: opaque to the caller, a cursor of this query for the server. */
  readonly after?: string;
  readonly selector?: LabelSelector;
}

export interface ListPage<T> {
  readonly items: readonly T[];
  readonly next?: string;
}

/** @throws StarlingError `BadRequest` */
export function pageRequest(query: Readonly<Record<string, string>>): PageRequest {
  const limit = query.limit === undefined ? defaultLimit : Number(query.limit);
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit) {
    throw refusal(
      "BadRequest",
      `limit is "${excerpt(query.limit ?? "")}"; expected a whole number from 1 to ${maxLimit}`,
    );
  }
  const selector = query.labelSelector === undefined ? undefined : parseSelectorText(query.labelSelector);
  if (selector?.ok === false) throw refusal("BadRequest", `labelSelector: ${selector.message}`);
  return {
    limit,
    ...defined({ after: query.continue }),
    ...(selector === undefined ? {} : { selector: selector.selector }),
  };
}

export function keepsLabels(request: PageRequest, row: { readonly labels: Readonly<Record<string, string>> }): boolean {
  return request.selector === undefined || matchesSelector(request.selector, row.labels);
}

/** Reads pages until the limit is reached or the answer is full, keeping each row that `keep` turns into an item. */
export async function collect<T, R extends Row>(
  request: PageRequest,
  source: {
    readonly read: (page: { limit: number; after?: string }) => Promise<Page<R>>;
    readonly keep: (row: R) => T | undefined;
  },
): Promise<ListPage<T>> {
  const items: T[] = [];
  let after = request.after;
  for (let reads = 0; reads < readsPerAnswer; reads++) {
    const page = await source.read({
      limit: Math.min(rowsPerRead, request.limit - items.length),
      ...defined({ after }),
    });
    for (const row of page.items) {
      const item = source.keep(row);
      if (item !== undefined) items.push(item);
    }
    after = page.next;
    if (after === undefined || items.length >= request.limit || fittingItems(items) < items.length) break;
  }
  return { items, ...defined({ next: after }) };
}

/** The first rows of a query; a page of the table may end before them. */
export async function firstRows<Type extends RowType, Kept extends Newer = undefined>(
  table: Table,
  query: RowQuery<Type, Kept> & { readonly limit: number },
): Promise<readonly RowRead<Type, Kept>[]> {
  const found: RowRead<Type, Kept>[] = [];
  for await (const page of allPages((start) =>
    table.query({ ...query, limit: query.limit - found.length, ...start }),
  )) {
    found.push(...page);
    if (found.length >= query.limit) break;
  }
  return found;
}

const cursorSchema = z.record(z.string(), boundedText(2000));

/** A cursor with several parts. */
export function encodeCursor(value: Readonly<Record<string, string>>): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

/** @throws StarlingError `BadRequest` when the text does not come from `encodeCursor`. */
export function decodeCursor(text: string): Readonly<Record<string, string>> {
  try {
    const parsed = cursorSchema.safeParse(JSON.parse(Buffer.from(text, "base64url").toString("utf8")));
    if (parsed.success) return parsed.data;
  } catch {
    // falls through to the refusal: the text is not ours
  }
  throw refusal("BadRequest", "continue is not a token of this list; leave it out to start again");
}
