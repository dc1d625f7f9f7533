import type { ApiPorts, Caller } from "#functions/api/api-ports.ts";
import { blobKeys } from "#shared/fleet/blob-keys.ts";
import { subjectFields } from "#shared/fleet/log-fields.ts";
import type { Subject } from "#shared/fleet/rows/keys.ts";

export interface ContentsRequest {
  readonly subject: Subject;
  /** Digests. */
  readonly renderings: readonly string[];
  readonly artifacts: readonly string[];
  readonly caller: Caller;
}

/** URLs, by digest. */
export interface ContentsAnswer {
  readonly renderings: Readonly<Record<string, string>>;
  readonly artifacts: Readonly<Record<string, string>>;
}

/** Where the caller may read what was rendered, and what from, for some minutes. Nothing is masked in it: who asked is logged. */
export async function linkContents(
  { links, log }: Pick<ApiPorts, "links" | "log">,
  { subject, renderings, artifacts, caller }: ContentsRequest,
): Promise<ContentsAnswer> {
  const linked = async (digests: readonly string[], keyOf: (digest: string) => string) =>
    Object.fromEntries(
      await Promise.all(digests.map(async (digest) => [digest, await links.link(keyOf(digest))] as const)),
    );
  const answer = {
    renderings: await linked(renderings, blobKeys.rendering),
    artifacts: await linked(artifacts, blobKeys.artifact),
  };
  log.info("contents handed out", { ...subjectFields(subject), principal: caller.principal, renderings, artifacts });
  return answer;
}
