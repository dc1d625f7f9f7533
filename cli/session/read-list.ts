import type { Session } from "#cli/session/session.ts";
import type { ApiList } from "#shared/fleet/api/objects.ts";

/** The API returns at most this many items at once. */
const pageSize = 500;

export interface ListRequest {
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly limit: number;
  readonly after?: string;
}

/** Reads pages until there are `limit` items; `metadata.continue` is set if there are more. */
export async function readList<Item>(session: Session, request: ListRequest): Promise<ApiList<Item>> {
  const items: Item[] = [];
  let after = request.after;
  for (;;) {
    const page = await session.api.call<ApiList<Item>>({
      method: "GET",
      path: request.path,
      query: { ...request.query, limit: String(Math.min(pageSize, request.limit - items.length)), continue: after },
    });
    items.push(...page.items);
    after = page.metadata.continue;
    if (after === undefined || items.length >= request.limit) {
      return { ...page, metadata: after === undefined ? {} : { continue: after }, items };
    }
  }
}
