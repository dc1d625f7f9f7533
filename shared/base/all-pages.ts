/** Where a page begins; the first one has no `after`. */
export interface PageStart {
  readonly after?: string;
}

/** A list that is read page by page. What it gives as `next` begins the page that follows; the last one has none. */
export type PagedList<T> = (
  start: PageStart,
) => Promise<{ readonly items: readonly T[]; readonly next?: string | undefined }>;

/** Every page of a list; some may be empty. Each is asked for when the one before was taken: who stops asks no more. */
export async function* allPages<T>(list: PagedList<T>): AsyncGenerator<readonly T[], void, undefined> {
  let start: PageStart | undefined = {};
  while (start !== undefined) {
    const { items, next }: Awaited<ReturnType<PagedList<T>>> = await list(start);
    yield items;
    start = next === undefined ? undefined : { after: next };
  }
}

/** Every item of a list, read as `allPages` does. */
export async function* allItems<T>(list: PagedList<T>): AsyncGenerator<T, void, undefined> {
  for await (const items of allPages(list)) yield* items;
}
