import { readFileSync } from "node:fs";

/** PEM certificates from a file that was deployed with the function; nothing where there is none to read. */
export function readCertificates(file: string | undefined): string | undefined {
  return file === undefined ? undefined : readFileSync(file, "utf8");
}
