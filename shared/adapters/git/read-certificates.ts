import { readFileSync } from "node:fs";

/** PEM certificates from a file that is deployed with the function; undefined without a file. */
export function readCertificates(file: string | undefined): string | undefined {
  return file === undefined ? undefined : readFileSync(file, "utf8");
}
