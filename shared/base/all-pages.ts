/** Where a page begins. The first page has no `after`. */
export interface PageStart {
  readonly after?: string;
}

/** A list that is read in pages. `next` begins the following page; the last page has none. */
export type PagedList<T> = (
  start: PageStart,
) => Promise<{ readonly items: readonly T[]; readonly next?: string | undefined }>;

/** Every page of a list; some may be empty. A page is requested only after the previous one was consumed. */
export async function* allPages<T>(list: PagedList<T>): AsyncGenerator<readonly T[], void, undefined> {
  let start: PageStart | undefined = {};
  while (start !== undefined) {
    const { items, next }: Awaited<ReturnType<PagedList<T>>> = await list(start);
    yield items;
    start = next === undefined ? undefined : { after: next };
  }
}

/** Every item of a list, read like `allPages`. */
export async function* allItems<T>(list: PagedList<T>): AsyncGenerator<T, void, undefined> {
  for await (const items of allPages(list)) yield* items;
}
