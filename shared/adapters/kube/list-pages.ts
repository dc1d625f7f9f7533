import { answerLimits, listLimits } from "#shared/adapters/kube/answer-budget.ts";
import { shapeNameOf } from "#shared/adapters/kube/kube-answers.ts";
import {
  answerRefusal,
  type KubeRequest,
  type KubeSender,
  malformedAnswer,
} from "#shared/adapters/kube/kube-sender.ts";
import { defined } from "#shared/base/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { KubeError } from "#shared/kube/kube-error.ts";
import { stringAt } from "#shared/kube/kube-object.ts";

const pageSize = 500;
const maxRelists = 3;
/** A server's token has some hundred bytes, and must fit into an address. */
const maxTokenLength = 8_192;

export interface KubeList<T> {
  /** The path without `limit` and `continue`. */
  readonly path: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly accept?: string;
  readonly secret: boolean;
  readonly maxItems?: number;
  /** Returns what is kept of an item, or undefined for an unneeded item, whose memory is freed with its page. */
  readonly take: (item: JsonObject, request: KubeRequest, index: number) => T | undefined;
}

/**
 * All items of all pages. It starts again when the server forgets the version of a page, and requests smaller pages
 * when a page is too large. A list that cannot be read completely is an error, never a shorter list.
 */
export async function listPages<T>(sender: KubeSender, list: KubeList<T>): Promise<readonly T[]> {
  for (let relist = 0; ; relist += 1) {
    const held: KubeRequest[] = [];
    try {
      return await listOnce(sender, list, held);
    } catch (error) {
      for (const request of held) sender.release(request);
      const expired = error instanceof KubeError && error.class === "expired";
      if (!expired || relist >= maxRelists) throw error;
    }
  }
}

async function listOnce<T>(sender: KubeSender, list: KubeList<T>, held: KubeRequest[]): Promise<readonly T[]> {
  const taken: T[] = [];
  const maxItems = list.maxItems ?? Number.POSITIVE_INFINITY;
  const tokens = new Set<string>();
  let limit = Math.min(pageSize, maxItems);
  let token: string | undefined;
  let seen = 0;
  for (let pages = 0; ; pages += 1) {
    const request = requestOf(list, { limit, token });
    if (pages === listLimits.pages || seen > listLimits.items) throw tooLong(request, { pages, seen });
    const page = await readPage(sender, request, limit);
    if (page === "too large") {
      limit = Math.max(1, Math.floor(limit / 4));
      continue;
    }
    held.push(request);
    const items = itemsOf(page, request);
    const before = taken.length;
    for (const [index, item] of items.entries()) {
      const one = list.take(asObject(item, request, index), request, index);
      if (one !== undefined) taken.push(one);
    }
    if (taken.length === before) sender.release(request);
    seen += items.length;
    token = tokenOf(page, request);
    if (token === undefined || taken.length >= maxItems) return taken;
    if (tokens.has(token)) throw malformedAnswer(request, "its continue token is repeated");
    tokens.add(token);
  }
}

function requestOf<T>(
  { path, parameters, accept, secret }: KubeList<T>,
  page: { readonly limit: number; readonly token: string | undefined },
): KubeRequest {
  const query = new URLSearchParams({ limit: String(page.limit), ...parameters });
  if (page.token !== undefined) query.set("continue", page.token);
  return {
    method: "GET",
    path: `${path}?${query}`,
    secret,
    limit: answerLimits.page,
    holds: true,
    ...defined({ accept }),
  };
}

async function readPage(sender: KubeSender, request: KubeRequest, limit: number): Promise<Json | "too large"> {
  try {
    return (await sender.read(request)).body;
  } catch (error) {
    const tooLarge = error instanceof KubeError && (error.reason === "AnswerTooLarge" || error.status === 413);
    if (tooLarge && limit > 1) return "too large";
    throw error;
  }
}

/** Go writes an empty list as null. An answer without items is not a list, and not an empty list. */
function itemsOf(page: Json, request: KubeRequest): readonly Json[] {
  const items = isJsonObject(page) ? page.items : undefined;
  if (items === null) return [];
  if (!Array.isArray(items)) throw malformedAnswer(request, `items is ${shapeNameOf(items)}, expected a list`);
  return items;
}

function asObject(item: Json, request: KubeRequest, index: number): JsonObject {
  if (!isJsonObject(item))
    throw malformedAnswer(request, `items[${index}] is ${shapeNameOf(item)}, expected an object`);
  return item;
}

function tokenOf(page: Json, request: KubeRequest): string | undefined {
  const token = stringAt(page, "metadata", "continue") || undefined;
  if (token === undefined || token.length <= maxTokenLength) return token;
  throw malformedAnswer(request, `its continue token has ${token.length} characters`);
}

function tooLong(request: KubeRequest, { pages, seen }: { readonly pages: number; readonly seen: number }): KubeError {
  const limits = `${listLimits.items} items on ${listLimits.pages} pages are the limit`;
  const remedy = "delete objects of the kind in the namespace or in the cluster";
  return answerRefusal(
    request,
    "ListTooLong",
    `the list continues after ${seen} items on ${pages} pages, and ${limits}; ${remedy}`,
  );
}
