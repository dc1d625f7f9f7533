/** What an installation has stored, past its door: by links that the caller may follow for some minutes. */
import { CliFailure } from "#cli/session/failure.ts";
import { objectPath } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { HttpTransfer } from "#shared/adapters/net/http-transfer.ts";
import { unpackArtifact } from "#shared/adapters/render/artifact-archive.ts";
import type { Subject } from "#shared/fleet/rows/keys.ts";
import type { TreeFile } from "#shared/ports.ts";

type Kind = "renderings" | "artifacts";

/** URLs by digest; of at most a hundred. */
export async function contentLinks(
  { api }: Pick<Session, "api">,
  { kind: of, namespace, name }: Subject,
  [kind, digests]: readonly [Kind, readonly string[]],
): Promise<Readonly<Record<string, string>>> {
  const path = `${objectPath({ kind: of, name }, namespace)}/contents`;
  const body = { [kind]: digests };
  return (await api.call<Readonly<Record<Kind, Record<string, string>>>>({ method: "POST", path, body }))[kind];
}

/** The files of an artifact. @throws CliFailure when it is not to be had. */
export async function storedArtifact(session: Session, subject: Subject, digest: string): Promise<readonly TreeFile[]> {
  const { [digest]: url } = await contentLinks(session, subject, ["artifacts", [digest]]);
  if (url === undefined) throw lost(`artifact ${digest}`, "nobody says where it is");
  return unpackArtifact(await new HttpTransfer().download(url), digest);
}

export function lost(what: string, why: string): CliFailure {
  return new CliFailure(`${what} is not to be had: ${why}`, { exit: "unknown", next: "try the same command again" });
}
