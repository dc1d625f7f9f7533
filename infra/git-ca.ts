import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";

/** More than all public authorities together. */
const mostBytes = 1_000_000;

/**
 * Certificates in PEM, from a setting that is these or the path of a file with them.
 * @throws Error with what is wrong about it, without repeating the text.
 */
export function readGitCa(pemOrPath: string): string {
  const text = pemOrPath.includes("-----BEGIN ") ? pemOrPath : readText(pemOrPath);
  if (text.length > mostBytes) throw new Error(`it has more than ${mostBytes} characters`);
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text))
    throw new Error("it holds a private key, which is nobody's but its owner's");
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new Error("there is no certificate in it");
  for (const [index, block] of blocks.entries()) checkCertificate(block, index + 1);
  return `${blocks.join("\n")}\n`;
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new Error(`no file of this name can be read (${(error as NodeJS.ErrnoException).code})`, { cause: error });
  }
}

function checkCertificate(block: string, number: number): void {
  try {
    new X509Certificate(block);
  } catch (error) {
    throw new Error(`certificate ${number} in it is none that can be read`, { cause: error });
  }
}
