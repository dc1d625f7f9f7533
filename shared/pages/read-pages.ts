import type { ApiList } from "#shared/fleet/api/objects.ts";
import type { Ask } from "#shared/pages/ask.ts";

/** The items of the first pages of a list. */
export interface PagesRead<Item> {
  readonly items: readonly Item[];
  /** Whether there may be more items. */
  readonly isCut: boolean;
}

/** @param list.mostPages - the most pages to read. A page can be empty without being the last. */
export async function readPages<Item>(
  ask: Ask,
  list: {
    readonly path: string;
    readonly query?: Readonly<Record<string, string>>;
    readonly mostPages: number;
  },
): Promise<PagesRead<Item>> {
  const items: Item[] = [];
  let next: string | undefined;
  for (let pages = 0; pages < list.mostPages; pages++) {
    const page = await ask<ApiList<Item>>(list.path, { ...list.query, continue: next });
    items.push(...page.items);
    next = page.metadata.continue;
    if (next === undefined) return { items, isCut: false };
  }
  return { items, isCut: true };
}
