import type { Document } from "#shared/fleet/kinds/document.ts";

/** What is to be seen instead of what is there. */
export interface Changes {
  readonly documents: readonly Document[];
  /** Folder by name of the Source. */
  readonly folders: ReadonlyMap<string, string>;
  /** Likewise; that of `""` is of the only Source there is. */
  readonly revisions: ReadonlyMap<string, string>;
  /** Whether an installation is asked for what the documents do not say. */
  readonly from: "installation" | "documents alone";
  /** The only one that is looked at; absent: all. */
  readonly cluster?: string;
}
