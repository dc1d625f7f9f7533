import type { WrittenRow } from "#functions/api/write/object-change.ts";
import type { Document } from "#shared/fleet/kinds/document.ts";
import { type SecretProblem, secretProblems, secretsOf } from "#shared/fleet/kinds/secret-folder.ts";

/** An object that is stored with such a name may be written again; it still does not work. */
export interface JudgedSecrets {
  readonly refused: readonly SecretProblem[];
  readonly warnings: readonly string[];
}

/** Judges the names of secrets that no role of the installation may read. */
export function judgeSecrets(document: Document, before: WrittenRow | undefined, installation: string): JudgedSecrets {
  const problems = secretProblems(document, installation);
  const stored = problems.length === 0 ? new Set<string>() : storedSecrets(document, before);
  return {
    refused: problems.filter(({ secret }) => !stored.has(secret)),
    warnings: problems.filter(({ secret }) => stored.has(secret)).map(({ field, message }) => `${field} ${message}`),
  };
}

function storedSecrets(document: Document, before: WrittenRow | undefined): ReadonlySet<string> {
  if (before?.type !== document.kind) return new Set();
  const stored = { ...document, spec: before.spec } as Document;
  return new Set(secretsOf(stored).map(({ secret }) => secret));
}
