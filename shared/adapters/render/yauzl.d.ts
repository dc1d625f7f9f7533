/** The part of yauzl 3.4 that is used; the package brings no types. */
declare module "yauzl" {
  import type { Readable } from "node:stream";

  export interface Entry {
    readonly fileName: string;
  }

  export interface ZipFile {
    eachEntry(): AsyncIterable<Entry>;
    openReadStreamPromise(entry: Entry): Promise<Readable>;
    close(): void;
  }

  export function openPromise(path: string): Promise<ZipFile>;
}
