import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";

/** More characters than all public authorities have together. */
const mostBytes = 1_000_000;

/**
 * Reads PEM certificates from a setting that holds them or the path of a file with them.
 * @throws Error with the problem, without repeating the text.
 */
export function readGitCa(pemOrPath: string): string {
  const text = pemOrPath.includes("-----BEGIN ") ? pemOrPath : readText(pemOrPath);
  if (text.length > mostBytes) throw new Error(`it has more than ${mostBytes} characters`);
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text))
    throw new Error("it contains a private key, which must not be deployed");
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new Error("it contains no certificate");
  for (const [index, block] of blocks.entries()) checkCertificate(block, index + 1);
  return `${blocks.join("\n")}\n`;
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new Error(`the file cannot be read (${(error as NodeJS.ErrnoException).code})`, { cause: error });
  }
}

function checkCertificate(block: string, number: number): void {
  try {
    new X509Certificate(block);
  } catch (error) {
    throw new Error(`certificate ${number} in it cannot be parsed`, { cause: error });
  }
}
