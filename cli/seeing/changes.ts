import type { Document } from "#shared/fleet/kinds/document.ts";

/** Replacements for parts of an installation. */
export interface Changes {
  readonly documents: readonly Document[];
  /** Folder by name of the Source. */
  readonly folders: ReadonlyMap<string, string>;
  /** Revision by name of the Source. The name `""` stands for the only Source. */
  readonly revisions: ReadonlyMap<string, string>;
  /** Whether everything else is read from an installation. */
  readonly from: "installation" | "documents alone";
  /** The only cluster that is planned. Absent: all. */
  readonly cluster?: string;
}
