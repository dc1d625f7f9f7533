/** What an installation has stored, past its door: by links that the caller may follow for some minutes. */
import { CliFailure } from "#cli/session/failure.ts";
import { pathOfObject } from "#cli/session/kind-names.ts";
import { isNotFound } from "#cli/session/rollout-owner.ts";
import type { Session } from "#cli/session/session.ts";
import { HttpTransfer } from "#shared/adapters/net/http-transfer.ts";
import { unpackArtifact } from "#shared/adapters/render/artifact-archive.ts";
import type { Owner } from "#shared/fleet/rows/keys.ts";
import type { TreeFile } from "#shared/ports.ts";

/** A rendering, and a Sync that refers to it. */
export interface StoredRendering {
  readonly digest: string;
  readonly cluster: string;
  readonly sync: string;
}

/**
 * URLs by digest; of at most a hundred Syncs.
 * @throws CliFailure when a rollout has gone on since the Syncs were read, and none of them has the rendering any more.
 */
export async function renderingLinks(
  { api }: Pick<Session, "api">,
  { kind, namespace, name }: Owner,
  renderings: readonly StoredRendering[],
): Promise<Readonly<Record<string, string>>> {
  const path = `${pathOfObject({ kind, name }, namespace)}/contents`;
  const call = { method: "POST", path, body: { renderings } } as const;
  const answer = await api
    .call<{ readonly renderings: Readonly<Record<string, string>> }>(call)
    .catch((error: unknown) => {
      throw isNotFound(error) ? lost(`a rendering of ${kind} ${namespace}/${name}`, movedOn(error)) : error;
    });
  return answer.renderings;
}

/** The files of an artifact that a Source has, or had in 30 days. @throws CliFailure when it is not to be had. */
export async function storedArtifact(
  { api }: Pick<Session, "api">,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  digest: string,
): Promise<readonly TreeFile[]> {
  const path = `${pathOfObject({ kind: "Source", name }, namespace)}/contents`;
  const body = { artifacts: [digest] };
  const answer = await api.call<{ readonly artifacts: Readonly<Record<string, string>> }>({
    method: "POST",
    path,
    body,
  });
  const { [digest]: url } = answer.artifacts;
  if (url === undefined) throw lost(`artifact ${digest}`, "nobody says where it is");
  return unpackArtifact(await new HttpTransfer().download(url), digest);
}

/** It says nothing of what would change. */
function movedOn({ message }: Error): string {
  return `the fleet went on while it was read: ${message.replace(/; read the fleet again$/, "")}`;
}

export function lost(what: string, why: string): CliFailure {
  return new CliFailure(`${what} is not to be had: ${why}`, { exit: "unknown", next: "try the same command again" });
}
